/** The end of workers, subscriptions and registries, which leaves nothing behind. */
import { getEventListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { delay, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { idsIn, startRegistry } from './registries.ts'

const quick = { timeoutMs: 1000 }

test('closing a registry unregisters its workers, and so does the signal of a worker', async () => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
  const leaving = new AbortController()
  registry.register('mill', 'a', quick, leaving.signal)
  registry.register('mill', 'b', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a', 'b']))
  leaving.abort(new Error('done'))
  await eventually(async () => expect(await db.withPrefix('worker:')).toHaveLength(1))
  await registry.close()
  expect(await db.withPrefix('worker:')).toEqual([])
})

test('closing a registry waits for a worker whose signal has just aborted', async () => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
  const leaving = new AbortController()
  registry.register('mill', 'a', quick, leaving.signal)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  leaving.abort(new Error('done'))
  await registry.close()
  expect(await db.withPrefix('worker:')).toEqual([])
})

test('a worker that unregisters during its own write leaves no document', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const registry = startRegistry(createTestCouch({ url: proxy.url }).db(db.name))
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

test('an unresponsive server does not delay closing a registry', async () => {
  const db = await freshDb('workers')
  const proxy = await startFaultyProxy()
  const registry = startRegistry(createTestCouch({ url: proxy.url }).db(db.name))
  const leaving = new AbortController()
  registry.register('mill', 'a', quick, leaving.signal)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  proxy.freeze(true)
  await sleep(500) // a heartbeat round is running
  leaving.abort(new Error('done'))
  await registry.close()
})

test('an aborted signal registers no worker and adds no subscriber', async () => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
  const received = vi.fn()
  const aborted = AbortSignal.abort()
  await registry.unregister(registry.register('mill', 'a', quick, aborted))
  registry.subscribe('mill', received, aborted)
  registry.register('mill', 'b', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['b']))
  registry.register('mill', 'b', quick, aborted)
  await eventually(async () => expect(await db.withPrefix('worker:')).toEqual([]))
  expect(received).not.toHaveBeenCalled()
})

test('a closed registry does nothing', async () => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
  registry.register('mill', 'a', quick)
  await eventually(() => expect(idsIn(registry)).toEqual(['a']))
  await registry.close()
  const received = vi.fn()
  const ref = registry.register('mill', 'late', quick)
  registry.subscribe('mill', received)()
  registry.subscribe('mill', received)
  await sleep(500)
  expect(await db.withPrefix('worker:')).toEqual([])
  expect(await db.find('_local/worker:mill:late')).toBeUndefined()
  expect(received).not.toHaveBeenCalled()
  await registry.unregister(ref)
})

test('a worker that unregisters and registers again at once stays registered', async () => {
  const db = await freshDb('workers')
  const registry = startRegistry(db)
  await registry.unregister(registry.register('mill', 'a', quick))
  const ref = registry.register('mill', 'a', quick)
  await sleep(2500) // the writes of the first registration are over
  expect(idsIn(registry)).toEqual(['a'])
  await registry.unregister(ref)
  expect(await db.withPrefix('worker:')).toEqual([])
})

test('a long-lived signal keeps no listener of ended registrations', async () => {
  const registry = startRegistry(await freshDb('workers'))
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
