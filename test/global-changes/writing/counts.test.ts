/** The lag of database events, as the counters report it. */
import { expect, test } from 'vitest'
import { couchUrl, freshDb, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { refuse, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { settings, startGlobalChanges } from './rig.ts'

test('an event in a window counts as lag until it is written', async () => {
  const { changes, swept, seen } = startGlobalChanges()
  await swept()
  const db = await freshDb('orders')
  await seen(db.name, ['created']) // then a feed reports its changes at once, on any server
  const slow = { ...settings, max_event_delay: 60_000 }
  changes.change(slow)
  await eventually(async () => {
    await db.put({ _id: uniqueName('order') })
    expect(changes.counts().pendingEvents).toBeGreaterThan(0)
  })
  await eventually(() => expect(changes.counts().lagMs, 'longer than a write takes').toBeGreaterThan(1000))
  changes.change({ ...slow, max_event_delay: 0, max_write_delay: 60_000 })
  await eventually(() => expect(changes.counts()).toMatchObject({ pendingEvents: 0 }))
  expect(changes.counts().pendingWrites, 'events that moved to the second window').toBeGreaterThan(0)
  changes.change(settings)
  await eventually(() => expect(changes.counts()).toMatchObject({ pendingEvents: 0, pendingWrites: 0, lagMs: 0 }))
})

test('a failed write counts as lag from its first attempt', async () => {
  const proxy = await startFaultyProxy()
  const { changes, name, seen, swept } = startGlobalChanges({ by: proxy.url })
  await swept()
  const isWrite = ({ path }: SeenRequest) => path === `/${name}/_bulk_docs`
  proxy.plan((request) => (isWrite(request) ? refuse(500) : undefined))
  const db = await freshDb('orders')
  await db.put({ _id: 'a' })
  const tries = () => proxy.requests.filter(isWrite).length
  const before = tries()
  await eventually(() => expect(tries()).toBeGreaterThan(before + 1))
  const { lagMs } = changes.counts()
  await eventually(() => expect(tries()).toBeGreaterThan(before + 3))
  expect(changes.counts().lagMs).toBeGreaterThan(lagMs)
  proxy.plan(() => undefined)
  await seen(db.name, ['created', 'updated'])
  await eventually(() => expect(changes.counts().lagMs).toBe(0))
})

test('the sweep age counts from the last complete sweep, and is absent while the feature is off', async () => {
  const proxy = await startFaultyProxy()
  const { changes, swept } = startGlobalChanges({
    ...{ url: couchUrl(), by: proxy.url, settings: { ...settings, sweep_interval: 100 } },
  })
  await swept()
  const age = () => changes.counts().sweptMsAgo
  const isList = ({ path }: SeenRequest) => path === '/_all_dbs'
  proxy.plan((request) => (isList(request) ? refuse(500) : undefined))
  const requested = proxy.requests.filter(isList).length
  const failed = () => proxy.requests.filter(isList).length - requested
  await eventually(() => expect(failed()).toBeGreaterThan(2))
  const [before, young] = [failed(), age()]
  await eventually(() => expect(failed()).toBeGreaterThan(before + 2))
  const began = performance.now() - age()
  expect(age()).toBeGreaterThan(young)
  proxy.plan(() => undefined)
  // Compares start times: the next sweep may take longer than the age of the last one.
  await eventually(() => expect(performance.now() - age()).toBeGreaterThan(began + 1))
  changes.change({ ...settings, update_db: false })
  expect(changes.counts()).toMatchObject({ on: false, sweptMsAgo: 0 })
})
