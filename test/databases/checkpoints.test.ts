/** Where a visit begins, and which checkpoints it trusts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Machines, State } from '../../ddocs/machine.ts'
import { ownerOf } from '../../sidecar/databases/jobs.ts'
import { createLatch } from '../docstate/rig.ts'
import { eventually } from '../support/eventually.ts'
import { pass, startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { createPrefix, make, order, startVisits, stateOf, type Rig, type RigOptions } from './rig.ts'

/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

const untilRest = (rig: Rig, databases: number) =>
  eventually(() => expect(rig.visited()).toMatchObject({ databases, open: 0, waiting: 0 }))

test('a visit handles a document whose event arrives after the listing and before the first visit', async () => {
  const prefix = createPrefix()
  const names = ['a', 'b', 'c'].map((name) => `${prefix}-db-${name}`)
  const first = startVisits(prefix, { lookAgainMs: HARDLY })
  const databases = await make(first, ...names)
  for (const name of names) first.report(name, 'created')
  for (const database of databases) await database.put(order('before'))
  for (const name of names) first.report(name)
  await eventually(() => expect(first.handled).toHaveLength(3))
  await untilRest(first, 3)
  await first.stop()

  const [proxy, latch] = [await startFaultyProxy(), createLatch()]
  proxy.plan(({ path }) =>
    path.includes('/_local/')
      ? async (exchange) => {
          await latch.opened
          await pass(exchange)
        }
      : undefined,
  )
  const second = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY, reads: 1 })
  await eventually(() => expect(second.visited()).toMatchObject({ databases: 3, open: 2, waiting: 1 }))
  await databases[2]!.put(order('meanwhile'))
  second.report(names[2]!)
  latch.open()
  await eventually(() => expect(second.handled).toEqual(['meanwhile']))
})

test('a checkpoint that another user wrote hides no document', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const first = startVisits(prefix, { lookAgainMs: HARDLY })
  const [a] = await make(first, name)
  await a!.put(order('before'))
  first.report(name, 'created')
  const checkpoint = await eventually(() => a!.get(`_local/couchdb-sidecar:${ownerOf(first.table)}`))
  await first.stop()
  expect(first.handled).toEqual(['before'])

  await a!.put(order('meanwhile'))
  await a!.put({
    ...checkpoint,
    _rev: (await a!.get(checkpoint._id))._rev,
    seq: (await a!.info()).update_seq,
    next_at: null,
  })
  const second = startVisits(prefix, { lookAgainMs: HARDLY })
  await eventually(() => expect(second.handled).toEqual(['meanwhile']))
})

test('a visit waits for its checkpoint, also where CouchDB takes seconds to store it', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const proxy = await startFaultyProxy()
  const slowly: Fault = (exchange) => sleep(3000).then(() => pass(exchange))
  proxy.plan(({ method, path }) => (method === 'PUT' && path.includes('/_local/') ? slowly : undefined))
  const rig = startVisits(prefix, { by: proxy.url, lookAgainMs: HARDLY })
  const [a] = await make(rig, name)
  rig.report(name, 'created')
  await eventually(() => a!.get(`_local/couchdb-sidecar:${ownerOf(rig.table)}`))
})

test('a new timeout of a state also ends the state of idle documents', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const paid: State = { mode: 'safe', create: 'client', next: { expired: 'sidecar' } }
  const keep: RigOptions['register'] = (control, handled) =>
    control.safe('order', 'paid', (doc) => {
      handled.push(doc._id)
      return Promise.resolve(doc)
    })
  const machinesOf = (paid: State): Machines => ({ order: { paid, expired: {}, error: {} } })
  const first = startVisits(prefix, { machines: machinesOf(paid), register: keep, lookAgainMs: HARDLY })
  const [a] = await make(first, name)
  await a!.put(order('kept'))
  first.report(name, 'created')
  await eventually(() => expect(first.handled).toEqual(['kept']))
  await untilRest(first, 1)
  await first.stop()

  const timeout = { afterMs: 1000, next: 'expired' }
  startVisits(prefix, { machines: machinesOf({ ...paid, timeout }), register: keep, lookAgainMs: HARDLY })
  await eventually(async () => expect(await stateOf(a!, 'kept')).toBe('expired'))
})
