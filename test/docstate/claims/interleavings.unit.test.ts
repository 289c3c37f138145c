/**
 * Checks that a handler runs at most once with two workers, three copies of a document, any order of messages, lost
 * answers and unreachable copies. The engine is the real one. The cluster is `three-copies.ts`.
 */
import fc from 'fast-check'
import pino, { type Logger } from 'pino'
import { expect, test } from 'vitest'
import type { Machines } from '../../../ddocs/machine.ts'
import type { Clock } from '../../../sidecar/core/clock.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import { createControl } from '../../../sidecar/docstate/control.ts'
import { Lease } from '../../../sidecar/docstate/claims/lease.ts'
import { createParts } from '../../../sidecar/docstate/parts.ts'
import type { EngineOptions } from '../../../sidecar/docstate/engine-options.ts'
import { createEvents } from '../../../sidecar/events/channels.ts'
import { seeded } from '../../chaos/seeded.ts'
import { amount } from '../../support/thorough.ts'
import { docstateIn } from '../rig.ts'
import { createThreeCopies, type Fate, type ThreeCopies, type Travel } from './three-copies.ts'

const LEASE_MS = 30_000
/** The number of times each worker reads the document, two leases apart. */
const LOOKS = 20
const RUNS = amount(300, 5000)

const outcome: fc.Arbitrary<Fate> = fc.record({
  answered: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, fc.constant(false)),
  unreached: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, fc.nat(2)),
})
/** The copies at which a client creates the document, each with its body. */
const making = fc.array(fc.record({ copy: fc.nat(2), by: fc.nat(1) }), { minLength: 1, maxLength: 3 })

/** Creates a clock for one worker. A sleep ends when the scheduler decides, and then advances the clock. */
function createClock(travel: Travel): Clock & { ticks(): number; turn(ms: number): void } {
  let now = 0
  return {
    now: () => Date.UTC(2030, 0, 1) + now,
    ticks: () => now,
    async sleep(ms, signal) {
      if (ms > 2 * LEASE_MS) await aborted(signal) // the timeout of a handler, after which another attempt may run
      await travel('time passes')
      signal.throwIfAborted()
      now += ms
    },
    turn: (ms) => void (now += ms),
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  )

interface WorkerOptions {
  readonly database: Database
  readonly worker: string
  readonly travel: Travel
  readonly log: Logger
  readonly onRun: () => void
  readonly stop: AbortSignal
}

/** Starts a worker whose handler counts its runs. */
function startWorker({ database, worker, travel, log, onRun, stop }: WorkerOptions) {
  const control = createControl<Machines>({})
  control.unsafe('order', 'paid', async (doc) => {
    onRun()
    await travel(`the handler of ${worker} runs`)
    return { ...doc, state: 'invoiced' }
  })
  const clock = createClock(travel)
  const none = () => {
    throw new Error('not in this test')
  }
  const options: EngineOptions = {
    ...{ database, table: control, worker, clock, log, random: seeded(1) },
    lease: new Lease({ leaseMs: LEASE_MS, clock, log }),
    ...{ events: createEvents({ log }), workers: {} as EngineOptions['workers'] },
    mailer: { forEntry: ({ done }) => ({ done, send: none }) },
  }
  const { dispatch } = createParts(options, stop, new AbortController().signal)
  return { clock, dispatch }
}

type Worker = ReturnType<typeof startWorker>

const look = ({ dispatch }: Worker, copies: ThreeCopies, copy: number) => {
  const doc = copies.shown(copy)
  if (doc) dispatch.offer(doc, 100, () => undefined)
}

/** Delivers messages until none is left. */
async function untilQuiet(scheduler: fc.Scheduler): Promise<void> {
  for (let idle = 0; idle < 3; idle++) {
    await new Promise(setImmediate) // waits until all pending messages are sent
    if (scheduler.count() === 0) continue
    idle = -1
    await scheduler.waitOne()
  }
}

test('a handler runs at most once for any order of messages and any lost answers', async () => {
  const seen = { once: 0, parked: 0 }
  const runsOnce = async (scheduler: fc.Scheduler, makings: { copy: number; by: number }[], fates: Fate[]) => {
    const stop = new AbortController()
    const travel: Travel = (message) => scheduler.schedule(Promise.resolve(), message)
    const copies = createThreeCopies({
      travel,
      outcome: () => fates.shift() ?? { answered: true, unreached: undefined },
    })
    const runs: string[] = []
    const errors: string[] = []
    const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) })
    const workers = ['a', 'b'].map((worker) =>
      startWorker({
        ...{ database: copies.database(worker), worker, travel, log, stop: stop.signal },
        onRun: () => runs.push(worker),
      }),
    )
    copies.onNews = (copy) =>
      void travel(`news of copy ${copy}`).then(() => workers[copy] && look(workers[copy], copies, copy))
    for (const { copy, by } of makings) copies.make(copy, { _id: 'o', type: 'order', state: 'paid', by })
    await untilQuiet(scheduler)
    for (let times = 0; times < LOOKS; times++) {
      for (const [copy, worker] of workers.entries()) {
        worker.clock.turn(2 * LEASE_MS)
        look(worker, copies, copy)
      }
      await untilQuiet(scheduler)
    }
    stop.abort(new Error('the test is over'))
    expect(errors).toEqual([])
    expect(runs.length, `runs by ${runs.join()}`).toBeLessThanOrEqual(1)
    const [doc, ...others] = copies.living()
    expect(others).toEqual([])
    const isParked = docstateIn(doc)?.parked !== undefined
    expect(doc?.state === 'invoiced' ? runs.length === 1 : isParked, JSON.stringify(doc)).toBe(true)
    seen[isParked ? 'parked' : 'once'] += 1
  }
  const fates = fc.array(outcome, { maxLength: 20 })
  await fc.assert(fc.asyncProperty(fc.scheduler(), making, fates, runsOnce), { numRuns: RUNS })
  expect(seen.once).toBeGreaterThan(seen.parked)
})
