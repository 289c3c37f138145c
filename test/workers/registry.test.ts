import { getEventListeners } from 'node:events'
import pino from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { listWorkers } from '../../sidecar/workers/list.ts'
import { createRegistry, type Registry } from '../../sidecar/workers/registry.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'

const quick = { timeoutMs: 1000 }

function start(database: Database): Registry {
  const log = pino({ level: 'silent' })
  const registry = createRegistry({ database, clock: systemClock, random: Math.random, log })
  onTestFinished(() => registry.close())
  return registry
}

const idsIn = (registry: Registry, role = 'mill') => registry.members(role)?.members.map(({ id }) => id)
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('whoever registers is seen by all, with what it tells of itself, until it unregisters', async () => {
  const db = await freshDb('workers')
  const [one, two] = [start(db), start(db)]
  const ref = one.register('mill', 'miller: 1', { ...quick, grain: 'rye' })
  two.register('mill', 'b', quick)
  await eventually(() => {
    for (const registry of [one, two]) expect(idsIn(registry)).toEqual(['b', 'miller: 1'])
  })
  expect(two.members('mill')!.members[1]).toMatchObject({ options: { grain: 'rye' }, timeoutMs: 1000 })
  expect(one.members('mill')!.version).toBe(two.members('mill')!.version)
  expect((await db.withPrefix('worker:')).map(({ role, worker, options }) => [role, worker, options])).toEqual([
    ['mill', 'b', {}],
    ['mill', 'miller: 1', { grain: 'rye' }],
  ])
  await one.unregister(ref)
  expect(await db.withPrefix('worker:')).toHaveLength(1)
  await eventually(() => expect(idsIn(two)).toEqual(['b']))
})

test('the same id again is the same ref, and changes what it tells; roles are apart', async () => {
  const db = await freshDb('workers')
  const registry = start(db)
  const ref = registry.register('mill', 'a', quick)
  registry.register('bakery', 'a', quick)
  await eventually(() => expect(idsIn(registry, 'bakery')).toEqual(['a']))
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  const { version } = registry.members('mill')!
  expect(registry.register('mill', 'a', { ...quick, grain: 'rye' })).toBe(ref)
  await eventually(() => expect(registry.members('mill')!.members[0]!.options).toEqual({ grain: 'rye' }))
  expect(registry.members('mill')!.version).not.toBe(version)
  await registry.unregister(ref)
  await registry.unregister(ref)
  expect(registry.members('mill')).toBeUndefined()
  expect(idsIn(registry, 'bakery')).toEqual(['a'])
})

test('signs of life are no revisions and no rows in the feed, and change no version', async () => {
  const db = await freshDb('workers')
  const [one, two] = [start(db), start(db)]
  one.register('mill', 'a', quick)
  two.register('mill', 'b', quick)
  await eventually(() => {
    for (const registry of [one, two]) expect(idsIn(registry)).toEqual(['a', 'b'])
  })
  const versions = vi.fn()
  one.subscribe('mill', ({ version }) => void versions(version))
  const before = await db.withPrefix('worker:')
  const beat = await db.get('_local/worker:mill:a')
  await sleep(1500)
  expect(await db.withPrefix('worker:')).toEqual(before)
  expect((await db.get('_local/worker:mill:a')).beat).toBeGreaterThan(beat.beat as number)
  expect(versions).toHaveBeenCalledOnce()
})

test('the dead are removed by whoever notices; who lives comes back', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const cutOff = start(createTestCouch({ url: proxy.url }).db(db.name))
  const watcher = start(db)
  cutOff.register('mill', 'cut off', quick)
  watcher.register('mill', 'b', quick)
  await eventually(() => expect(idsIn(watcher)).toEqual(['b', 'cut off']))
  const { version } = watcher.members('mill')!
  await proxy.down()
  await eventually(() => expect(idsIn(watcher)).toEqual(['b']))
  expect(await db.find('_local/worker:mill:cut off')).toBeUndefined()
  await proxy.up()
  await eventually(() => expect(idsIn(watcher)).toEqual(['b', 'cut off']))
  expect(watcher.members('mill')!.version, 'it was away').not.toBe(version)
})

test('a CouchDB that was away kills nobody', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  const registries = [start(through), start(through), start(through)]
  registries.forEach((registry, i) => registry.register('mill', `w${i}`, quick))
  await eventually(() => {
    for (const registry of registries) expect(idsIn(registry)).toHaveLength(3)
  })
  const before = await db.withPrefix('worker:')
  await proxy.down()
  await sleep(2000) // twice the timeout
  await proxy.up()
  await sleep(1500)
  expect(await db.withPrefix('worker:')).toEqual(before)
})

test('a subscriber is called at once, once for each version, and not after its end; one that throws harms nobody', async () => {
  const db = await freshDb('workers')
  const registry = start(db)
  const throwing = vi.fn(() => {
    throw new Error('not me')
  })
  const [early, late, aborted] = [vi.fn(), vi.fn(), vi.fn()]
  const leaving = new AbortController()
  const endThrowing = registry.subscribe('mill', throwing)
  registry.subscribe('mill', ({ members, ref }) => void early([ref.role, members.map(({ id }) => id)]))
  registry.subscribe('mill', aborted, leaving.signal)
  await eventually(() => expect(early).toHaveBeenCalledWith(['mill', []]))
  leaving.abort(new Error('the test says so'))
  registry.register('mill', 'a', quick)
  await eventually(() => expect(early).toHaveBeenLastCalledWith(['mill', ['a']]), { within: 8000 })
  expect(throwing.mock.calls.length).toBe(early.mock.calls.length)
  endThrowing()
  registry.subscribe('mill', late)
  expect(late).toHaveBeenCalledOnce()
  registry.register('mill', 'b', quick)
  await eventually(() => expect(early).toHaveBeenLastCalledWith(['mill', ['a', 'b']]))
  expect(late).toHaveBeenCalledTimes(2)
  expect(aborted).toHaveBeenCalledOnce()
  expect(throwing.mock.calls.length).toBeLessThan(early.mock.calls.length)
})

test('any program may be a worker, whatever it writes of itself', async () => {
  const db = await freshDb('workers')
  await db.put({ _id: 'worker:mill:plain' })
  await db.put({ _id: 'worker:mill:%', type: 'worker', worker: 3, options: 'none', timeout_ms: -1 })
  await db.put({ _id: 'worker:mill:z', worker: 'z', timeout_ms: 1000, options: { stones: 2 } })
  const registry = start(db)
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['%', 'a', 'plain', 'z']))
  expect(registry.members('mill')!.members[0]).toMatchObject({ options: {}, timeoutMs: 15_000 })
  for (let beat = 0; beat < 8; beat++) {
    await sleep(250)
    const rev = (await db.find('_local/worker:mill:z'))?._rev
    await db.put({ _id: '_local/worker:mill:z', beat, ...(rev !== undefined && { _rev: rev }) })
  }
  expect(idsIn(registry), 'it gives signs of life').toContain('z')
  await eventually(() => expect(idsIn(registry)).not.toContain('z'))
})

test('the end of a registry takes out its workers, and so does the signal of one', async () => {
  const db = await freshDb('workers')
  const registry = start(db)
  const leaving = new AbortController()
  registry.register('mill', 'a', quick, leaving.signal)
  registry.register('mill', 'b', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a', 'b']))
  leaving.abort(new Error('done'))
  await eventually(async () => expect(await db.withPrefix('worker:')).toHaveLength(1))
  await registry.close()
  expect(await db.withPrefix('worker:')).toEqual([])
})

test('the end of a registry waits for whom a signal has just taken out', async () => {
  const db = await freshDb('workers')
  const registry = start(db)
  const leaving = new AbortController()
  registry.register('mill', 'a', quick, leaving.signal)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  leaving.abort(new Error('done'))
  await registry.close()
  expect(await db.withPrefix('worker:')).toEqual([])
})

test('who leaves while it is being written down is not there afterwards', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const registry = start(createTestCouch({ url: proxy.url }).db(db.name))
  registry.register('mill', 'who stays', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['who stays']))
  const writesIt = ({ method, path }: SeenRequest) => method === 'PUT' && path === `/${db.name}/worker%3Amill%3Aa`
  proxy.next(delay(300), writesIt)
  const ref = registry.register('mill', 'a', quick)
  await eventually(() => expect(proxy.requests.some(writesIt)).toBe(true))
  await registry.unregister(ref)
  await sleep(400)
  expect(await db.find('worker:mill:a')).toBeUndefined()
})

test('the end of a registry is not held up by a server that does not answer', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const registry = start(createTestCouch({ url: proxy.url }).db(db.name))
  const leaving = new AbortController()
  registry.register('mill', 'a', quick, leaving.signal)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  proxy.freeze(true)
  await sleep(500) // a round is under way
  leaving.abort(new Error('done'))
  await registry.close()
})

test.each([300, 0, -1, NaN, Infinity])('a timeout of %d ms is written once, as it is meant', async (timeoutMs) => {
  const db = await freshDb('workers')
  const registry = start(db)
  registry.register('mill', 'a', { timeoutMs, grain: undefined as unknown as string })
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  await sleep(1000)
  expect((await db.get('worker:mill:a'))._rev).toMatch(/^1-/)
  expect((await db.get('worker:mill:a')).timeout_ms).toBe(timeoutMs === 300 ? 500 : 15_000)
  expect((await db.get('_local/worker:mill:a')).beat).toBeLessThan(10)
})

test('a signal that has aborted registers nobody and subscribes nobody', async () => {
  const db = await freshDb('workers')
  const registry = start(db)
  const told = vi.fn()
  const aborted = AbortSignal.abort()
  await registry.unregister(registry.register('mill', 'a', quick, aborted))
  registry.subscribe('mill', told, aborted)
  registry.register('mill', 'b', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['b']))
  registry.register('mill', 'b', quick, aborted)
  await eventually(async () => expect(await db.withPrefix('worker:')).toEqual([]))
  expect(told).not.toHaveBeenCalled()
})

test('after its end a registry does nothing', async () => {
  const db = await freshDb('workers')
  const registry = start(db)
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  await registry.close()
  const told = vi.fn()
  const ref = registry.register('mill', 'late', quick)
  registry.subscribe('mill', told)()
  registry.subscribe('mill', told)
  await sleep(500)
  expect(await db.withPrefix('worker:')).toEqual([])
  expect(await db.find('_local/worker:mill:late')).toBeUndefined()
  expect(told).not.toHaveBeenCalled()
  await registry.unregister(ref)
})

test('who leaves and comes back at once stays', async () => {
  const db = await freshDb('workers')
  const registry = start(db)
  await registry.unregister(registry.register('mill', 'a', quick))
  const ref = registry.register('mill', 'a', quick)
  await sleep(2500) // the last words of the first are over
  expect(idsIn(registry)).toEqual(['a'])
  await registry.unregister(ref)
  expect(await db.withPrefix('worker:')).toEqual([])
})

test('a subscriber that subscribes is told, and so is the new one, once of each version', async () => {
  const registry = start(await freshDb('workers'))
  const inner = vi.fn()
  const outer = vi.fn(() => {
    if (outer.mock.calls.length === 1) registry.subscribe('mill', ({ version }) => void inner(version))
  })
  registry.subscribe('mill', outer)
  await eventually(() => expect(outer).toHaveBeenCalled())
  expect(inner).toHaveBeenCalledOnce()
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']), { within: 8000 })
  expect(outer).toHaveBeenCalledTimes(2)
  expect(inner).toHaveBeenCalledTimes(2)
})

test('a signal that lives long keeps nothing of what has ended', async () => {
  const registry = start(await freshDb('workers'))
  const { signal } = new AbortController()
  const listeners = () => getEventListeners(signal, 'abort').length
  const refs = Array.from({ length: 5 }, () => registry.register('mill', 'a', quick, signal))
  const end = registry.subscribe('mill', () => undefined, signal)
  expect(listeners()).toBe(2)
  end()
  expect(listeners()).toBe(1)
  await registry.unregister(refs[0]!)
  expect(listeners()).toBe(0)
})

test('what only has the id of a worker is neither counted nor removed', async () => {
  const db = await freshDb('workers')
  const strays = [
    { _id: 'worker:mill:x', type: 'confirm', state: 'clicked', timeout_ms: 500 },
    { _id: 'worker:mill:y', type: 'worker', role: 'bakery', timeout_ms: 500 },
    { _id: 'worker:mill:', type: 'worker', timeout_ms: 500 },
    { _id: 'worker:50%', type: 'worker', timeout_ms: 500 },
  ]
  for (const stray of strays) await db.put(stray)
  await db.put({ _id: 'worker:50%25:a%3Ab' })
  const registry = start(db)
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  await sleep(1500)
  expect(idsIn(registry)).toEqual(['a'])
  for (const { _id } of strays) expect(await db.find(_id), _id).toBeDefined()
  const listed = await listWorkers(db, AbortSignal.timeout(5000))
  expect(listed.map(({ role, id }) => [role, id])).toEqual([
    ['50%', 'a:b'],
    ['mill', 'a'],
  ])
})

test('the dead are found over a slow line too, later', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  await db.put({ _id: 'worker:mill:dead', timeout_ms: 1000 })
  const registry = start(createTestCouch({ url: proxy.url }).db(db.name))
  proxy.plan(() => delay(250)) // a round is longer than half the timeout
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a', 'dead']))
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  expect(await db.find('worker:mill:dead')).toBeUndefined()
})
