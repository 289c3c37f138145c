import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { expect, test, vi } from 'vitest'
import { createEvents } from '../../sidecar/events/channels.ts'
import { listWorkers } from '../../sidecar/workers/list-workers.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, startFaultyProxy } from '../support/faulty-proxy.ts'
import { idsIn, startRegistry } from './registries.ts'

const quick = { timeoutMs: 1000 }

test('all registries see a registered worker with its options until it unregisters', async () => {
  const db = await freshDb('workers')
  const [one, two] = [startRegistry(db), startRegistry(db)]
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

test('events report workers that join and leave', async () => {
  const db = await freshDb('workers')
  const events = createEvents({ log: pino({ level: 'silent' }) })
  const received: unknown[] = []
  for (const name of ['worker:joined', 'worker:left'] as const) {
    events.subscribe(name, ({ event }) => void received.push([name, event.role, event.worker]))
  }
  startRegistry(db, undefined, events).register('mill', 'a', quick)
  await eventually(() => expect(received).toEqual([['worker:joined', 'mill', 'a']]))
  const other = startRegistry(db)
  const ref = other.register('mill', 'b', quick)
  await eventually(() => expect(received.slice(1)).toEqual([['worker:joined', 'mill', 'b']]))
  await other.unregister(ref)
  await eventually(() => expect(received.slice(2)).toEqual([['worker:left', 'mill', 'b']]))
})

test('registering an id again gives the same ref and changes the options, and roles are separate', async () => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
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

test('heartbeats create no revisions and no feed rows, and change no version', async () => {
  const db = await freshDb('workers')
  const [one, two] = [startRegistry(db), startRegistry(db)]
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

test('any registry removes a dead worker, and a live worker registers again', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const cutOff = startRegistry(createTestCouch({ url: proxy.url }).db(db.name))
  const watcher = startRegistry(db)
  cutOff.register('mill', 'cut off', quick)
  watcher.register('mill', 'b', quick)
  await eventually(() => expect(idsIn(watcher)).toEqual(['b', 'cut off']))
  const { version } = watcher.members('mill')!
  await proxy.down()
  await eventually(() => expect(idsIn(watcher)).toEqual(['b']))
  expect(await db.find('_local/worker:mill:cut off')).toBeUndefined()
  await proxy.up()
  await eventually(() => expect(idsIn(watcher)).toEqual(['b', 'cut off']))
  expect(watcher.members('mill')!.version, 'the worker left in the meantime').not.toBe(version)
})

test('a CouchDB outage declares no worker dead', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  const registries = [startRegistry(through), startRegistry(through), startRegistry(through)]
  registries.forEach((registry, i) => registry.register('mill', `w${i}`, quick))
  await eventually(() => {
    for (const registry of registries) expect(idsIn(registry)).toHaveLength(3)
  })
  const before = await db.withPrefix('worker:')
  await proxy.down()
  await sleep(2000) // two timeouts
  await proxy.up()
  await sleep(1500)
  expect(await db.withPrefix('worker:')).toEqual(before)
})

test('a subscriber is called at once, once per version and not after its end; its error affects no other', async () => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
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
  await eventually(() => expect(early).toHaveBeenLastCalledWith(['mill', ['a']]))
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

test('any program may be a worker, with any fields in its document', async () => {
  const db = await freshDb('workers')
  await db.put({ _id: 'worker:mill:plain' })
  await db.put({ _id: 'worker:mill:%', type: 'worker', worker: 3, options: 'none', timeout_ms: -1 })
  await db.put({ _id: 'worker:mill:z', worker: 'z', timeout_ms: 1000, options: { stones: 2 } })
  const registry = startRegistry(db)
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['%', 'a', 'plain', 'z']))
  expect(registry.members('mill')!.members[0]).toMatchObject({ options: {}, timeoutMs: 15_000 })
  for (let beat = 0; beat < 8; beat++) {
    await sleep(250)
    const rev = (await db.find('_local/worker:mill:z'))?._rev
    await db.put({ _id: '_local/worker:mill:z', beat, ...(rev !== undefined && { _rev: rev }) })
  }
  expect(idsIn(registry), 'a worker with heartbeats stays').toContain('z')
  await eventually(() => expect(idsIn(registry)).not.toContain('z'))
})

test.each([300, 0, -1, NaN, Infinity])('a timeout of %d ms is written once and unchanged', async (timeoutMs) => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
  registry.register('mill', 'a', { timeoutMs, grain: undefined as unknown as string })
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  await sleep(1000)
  expect((await db.get('worker:mill:a'))._rev).toMatch(/^1-/)
  expect((await db.get('worker:mill:a')).timeout_ms).toBe(timeoutMs === 300 ? 500 : 15_000)
  expect((await db.get('_local/worker:mill:a')).beat).toBeLessThan(10)
})

test('a subscriber may add a subscriber, and each receives every version once', async () => {
  const registry = startRegistry(await freshDb('workers'))
  const inner = vi.fn()
  const outer = vi.fn(() => {
    if (outer.mock.calls.length === 1) registry.subscribe('mill', ({ version }) => void inner(version))
  })
  registry.subscribe('mill', outer)
  await eventually(() => expect(outer).toHaveBeenCalled())
  expect(inner).toHaveBeenCalledOnce()
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  expect(outer).toHaveBeenCalledTimes(2)
  expect(inner).toHaveBeenCalledTimes(2)
})

test('a document that only has the id of a worker is neither counted nor removed', async () => {
  const db = await freshDb('workers')
  const strays = [
    { _id: 'worker:mill:x', type: 'confirm', state: 'clicked', timeout_ms: 500 },
    { _id: 'worker:mill:y', type: 'worker', role: 'bakery', timeout_ms: 500 },
    { _id: 'worker:mill:', type: 'worker', timeout_ms: 500 },
    { _id: 'worker:50%', type: 'worker', timeout_ms: 500 },
  ]
  for (const stray of strays) await db.put(stray)
  await db.put({ _id: 'worker:50%25:a%3Ab' })
  const registry = startRegistry(db)
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

test('a slow connection delays the detection of dead workers but does not prevent it', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  await db.put({ _id: 'worker:mill:dead', timeout_ms: 1000 })
  const registry = startRegistry(createTestCouch({ url: proxy.url }).db(db.name))
  proxy.plan(() => delay(250)) // a heartbeat round is longer than half the timeout
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a', 'dead']))
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  expect(await db.find('worker:mill:dead')).toBeUndefined()
})
