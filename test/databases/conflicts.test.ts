/** Conflicts in visited databases that outlast one visit. `test/docstate/conflicts` covers all other conflicts. */
import pino from 'pino'
import { expect, test } from 'vitest'
import { expectSettled, paid, replicate } from '../docstate/conflicts/branches.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { createSkippingClock } from '../support/skipping-clock.ts'
import { createPrefix, make, startVisits } from './rig.ts'

/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

test('a later visit merges a branch with the claim of a dead worker after the lease expires', async () => {
  const prefix = createPrefix()
  const rig = startVisits(prefix, { lookAgainMs: HARDLY })
  const [a] = await make(rig, `${prefix}-db-a`)
  const first = await a!.put(paid)
  const claim = { worker: 'dead', token: 'of the dead', at: new Date(0).toISOString(), lease_ms: 9000 }
  await a!.put({ ...paid, _rev: first, docstate: { state: 'paid', entry: first, claim } })
  await replicate(a!, first, 4, { ...paid, note: 'ring twice' })
  rig.report(a!.name, 'created')
  await eventually(() => expect(rig.visited().visits).toBeGreaterThan(0))
  expect(await a!.get('o', { conflicts: true })).toHaveProperty('_conflicts') // the lease has not expired yet
  await expectSettled(a!, { note: 'ring twice' })
})

test('a conflict that only an operator can resolve is logged once and retried with growing delays', async () => {
  const prefix = createPrefix()
  const errors: string[] = []
  const log = pino({ level: 'error' }, { write: (line) => void errors.push(line) })
  const [clock, proxy] = [createSkippingClock(), await startFaultyProxy()]
  const rig = startVisits(prefix, { by: proxy.url, log, clock, lookAgainMs: HARDLY })
  const [a] = await make(rig, `${prefix}-db-a`)
  const validate_doc_update = 'function (doc) { if (doc._deleted) throw({ forbidden: "no deletion" }) }'
  await a!.put({ _id: '_design/nodelete', validate_doc_update })
  const first = await a!.put(paid)
  await a!.put({ ...paid, _rev: first, state: 'invoiced' })
  await replicate(a!, first, 4, { ...paid, note: 'ring twice' })
  const tries = () => proxy.requests.filter(({ body }) => body.includes('"new_edits":false')).length
  /** Makes a visit whose feed has no change. The view returns the due conflict. */
  async function visit(what: 'created' | 'updated' = 'updated'): Promise<void> {
    const { visits } = rig.visited()
    rig.report(a!.name, what)
    await eventually(() => expect(rig.visited().visits).toBeGreaterThan(visits))
    await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
  }

  await visit('created')
  const before = tries()
  expect(before).toBeGreaterThan(0)
  clock.skip(61_000)
  await visit()
  expect(tries()).toBe(before + 1)
  clock.skip(40_000)
  await visit()
  expect(tries()).toBe(before + 1)
  expect(errors).toHaveLength(1)
  expect(errors[0]).toContain('a conflict cannot be resolved')
})
