/** Two processes that are the same worker: by mistake, or because one replaces the other. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Registry } from '../../sidecar/workers/registry.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { startRegistry } from './registries.ts'

/** A worker that the test can kill: it ends without unregistering. */
async function startMortal(name: string): Promise<{ registry: Registry; kill: () => Promise<void> }> {
  const proxy = await startFaultyProxy()
  return { registry: startRegistry(createTestCouch({ url: proxy.url }).db(name)), kill: () => proxy.down() }
}

const optionsIn = async (db: Database) => (await db.find('worker:mill:a'))?.options
const oats = { timeoutMs: 3000, grain: 'oats' }
const rye = { timeoutMs: 3000, grain: 'rye' }

test('each of two processes of one name logs the conflict at most once', async () => {
  const db = await freshDb('namesakes')
  const [toOne, toTwo] = [vi.fn(), vi.fn()]
  startRegistry(db, toOne).register('mill', 'a', oats)
  startRegistry(db, toTwo).register('mill', 'a', oats)
  const lines = () => [...toOne.mock.calls, ...toTwo.mock.calls].map(([line]) => line as string)
  await eventually(() => expect(lines()).not.toEqual([]))
  await sleep(5000)
  for (const line of lines()) expect(line).toMatch(/"worker":"a".*another process has the name of this worker/)
  for (const received of [toOne, toTwo]) expect(received.mock.calls.length).toBeLessThan(2)
})

test.each([2, 4])('%d processes of one name with different options do not overwrite each other', async (count) => {
  const db = await freshDb('namesakes')
  const registries = Array.from({ length: count }, () => startRegistry(db))
  registries.forEach((registry, i) => registry.register('mill', 'a', { timeoutMs: 3000, grain: `grain ${i}` }))
  await eventually(() => {
    for (const registry of registries) expect(registry.members('mill')?.members).toHaveLength(1)
  })
  const received = vi.fn()
  registries[0]!.subscribe('mill', ({ version }) => void received(version))
  await sleep(6000)
  expect((await db.get('worker:mill:a'))._rev).toMatch(/^1-/)
  expect(received).toHaveBeenCalledOnce()
})

test('the first process can change its options, and the second takes over once the first unregisters', async () => {
  const db = await freshDb('namesakes')
  const [first, second] = [startRegistry(db), startRegistry(db)]
  first.register('mill', 'a', oats)
  await eventually(async () => expect(await optionsIn(db)).toEqual({ grain: 'oats' }))
  second.register('mill', 'a', rye)
  await sleep(5000)
  const ref = first.register('mill', 'a', { ...oats, flakes: true })
  await eventually(async () => expect(await optionsIn(db)).toEqual({ grain: 'oats', flakes: true }))
  await first.unregister(ref)
  await eventually(async () => expect(await optionsIn(db)).toEqual({ grain: 'rye' }))
})

test('the second process unregisters without removing the first', async () => {
  const db = await freshDb('namesakes')
  const received = vi.fn()
  const [first, second] = [startRegistry(db), startRegistry(db, received)]
  first.register('mill', 'a', oats)
  await eventually(async () => expect(await optionsIn(db)).toEqual({ grain: 'oats' }))
  const ref = second.register('mill', 'a', rye)
  await eventually(() => expect(received).toHaveBeenCalled())
  await second.unregister(ref)
  expect((await db.get('worker:mill:a'))._rev).toMatch(/^1-/)
})

test('a worker that restarts after a crash is never declared dead and soon publishes its new options', async () => {
  const db = await freshDb('namesakes')
  const { registry, kill } = await startMortal(db.name)
  const [watcher, warned] = [startRegistry(db), vi.fn()]
  watcher.register('mill', 'b', { timeoutMs: 4000 })
  registry.register('mill', 'a', { ...oats, timeoutMs: 4000 })
  await eventually(() => expect(watcher.members('mill')?.members).toHaveLength(2))
  const counts = vi.fn()
  watcher.subscribe('mill', ({ members }) => void counts(members.length))
  await kill()
  startRegistry(db, warned).register('mill', 'a', { ...rye, timeoutMs: 4000 })
  await eventually(async () => expect(await optionsIn(db)).toEqual({ grain: 'rye' }))
  expect((await db.get('worker:mill:a'))._rev).toMatch(/^2-/)
  for (const [count] of counts.mock.calls) expect(count).toBe(2)
  expect(warned).not.toHaveBeenCalled()
})

test('a worker that restarts with the same options writes no revision', async () => {
  const db = await freshDb('namesakes')
  const { registry, kill } = await startMortal(db.name)
  registry.register('mill', 'a', oats)
  await eventually(async () => expect(await optionsIn(db)).toEqual({ grain: 'oats' }))
  await kill()
  const again = startRegistry(db)
  const ref = again.register('mill', 'a', oats)
  await sleep(2500)
  expect((await db.get('worker:mill:a'))._rev).toMatch(/^1-/)
  await again.unregister(ref)
  expect(await db.find('worker:mill:a')).toBeUndefined()
})
