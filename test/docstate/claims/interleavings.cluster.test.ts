/**
 * At most one run, on real nodes: two workers, each at a node of its own, reach for documents that were made at one node or
 * at several. The order in which their requests arrive, and what becomes of each, is generated; the order among the
 * copies is not: `interleavings.unit.test.ts` has that.
 */
import fc from 'fast-check'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { cut, cutAfterUpstream, delay, pass, refuse, startFaultyProxy, type Fault } from '../../support/faulty-proxy.ts'
import { amount } from '../../support/thorough.ts'
import { docstateIn, startRig } from '../rig.ts'
import { startNodes } from './nodes.ts'

const LEASE_MS = 1000

const fates: Readonly<Record<string, Fault>> = {
  ...{ pass, cut, 'lost answer': cutAfterUpstream, refused: refuse(503) },
  late: delay(1.2 * LEASE_MS),
  'late, lost answer': delay(1.2 * LEASE_MS, cutAfterUpstream),
}
/** Most pass: or nothing would come of anything. */
const fate = fc.oneof({ weight: 4, arbitrary: fc.constant('pass') }, fc.constantFrom(...Object.keys(fates)))

/** Which of the requests that wait goes on next, or all at once, and what becomes of it. */
const step = fc.record({ which: fc.oneof(fc.constant('all' as const), fc.nat(5)), fate })
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

/** The nodes at which documents are made, with which body. */
const making = fc.array(fc.record({ node: fc.nat(2), by: fc.nat(1) }), { minLength: 1, maxLength: 3 })
type Making = typeof making extends fc.Arbitrary<infer One> ? One : never
/** So many each time: claims that three copies take in different orders are one of some hundred. */
const TOGETHER = 10

/** Holds requests until it is their turn. */
function createConductor() {
  let waiting: ((fault: Fault) => void)[] = []
  let isOpen = true
  return {
    /** Of a request: what becomes of it, as soon as it is known. */
    hold: (): Fault | undefined =>
      isOpen ? undefined : async (exchange) => (await new Promise<Fault>((decide) => waiting.push(decide)))(exchange),
    /** Lets them pass one after the other, and then all that still come. */
    conduct: async (steps: readonly Step[]) => {
      for (const { which, fate } of steps) {
        const most = which === 'all' ? 50 : 10 // or each would be alone
        for (let tries = 0; tries < most && waiting.length < 2; tries++) await sleep(2)
        const [from, count] = which === 'all' ? [0, waiting.length] : [which % Math.max(waiting.length, 1), 1]
        for (const decide of waiting.splice(from, count)) decide(fates[fate]!)
      }
      isOpen = true
      for (const decide of waiting) decide(pass)
      waiting = []
    },
    /** From now on requests wait. */
    begin: () => void (isOpen = false),
  }
}

const isSettled = (doc: StoredDoc | undefined) => doc?.state === 'invoiced' || docstateIn(doc)?.parked !== undefined

test('no order of requests, and no lost answer, has a handler run twice', { timeout: 1_800_000 }, async () => {
  needs('cluster')
  const { name, databases, urls } = await startNodes()
  const { hold, conduct, begin } = createConductor()
  const effects = new Map<string, string[]>()
  for (const [i, url] of urls.slice(0, 2).entries()) {
    const proxy = await startFaultyProxy(url)
    proxy.plan(({ path }) => (/_changes|_local|_design/.test(path) ? undefined : hold()))
    const worker = `worker-${i}`
    await startRig(
      createTestCouch({ url: proxy.url }).db(name),
      (control) =>
        control.unsafe('order', 'paid', async (doc) => {
          effects.set(doc._id, [...(effects.get(doc._id) ?? []), worker])
          return { ...doc, state: 'invoiced' }
        }),
      { worker, leaseMs: LEASE_MS, graceMs: 500, sweepMs: 500 },
    )
  }
  let count = 0
  const ran = { once: 0, never: 0 }
  const runsOnce = async (makings: Making, steps: readonly Step[]) => {
    const ids = Array.from({ length: TOGETHER }, () => `o${count++}`)
    begin()
    const conducting = conduct(steps)
    await Promise.all(
      makings.map(({ node, by }) =>
        databases[node]!.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid', by }))),
      ),
    )
    await conducting
    for (const _id of ids) {
      await eventually(async () => {
        for (const db of databases) {
          const leaves = (await db.leaves(_id)).filter(({ _deleted }) => !_deleted)
          expect(leaves).toHaveLength(1)
          expect(isSettled(leaves[0])).toBe(true)
        }
      })
      const runs = effects.get(_id) ?? []
      expect(runs.length, `runs of ${_id}`).toBeLessThanOrEqual(1)
      if ((await databases[0]!.get(_id)).state === 'invoiced') expect(runs, 'invoiced without a run').toHaveLength(1)
      ran[runs.length === 0 ? 'never' : 'once'] += 1
    }
  }
  const steps = fc.array(step, { maxLength: 12 })
  await fc.assert(fc.asyncProperty(making, steps, runsOnce), { numRuns: amount(10, 500) })
  expect(ran.once).toBeGreaterThan(ran.never)
})
