import { createByteBudget } from '../core/byte-budget.ts'
import { Semaphore } from '../core/semaphore.ts'
import { CouchError } from '../couch/errors.ts'
import { createWriter } from '../couch/writer.ts'
import { createCheckpointStore } from '../feed/checkpoint-store.ts'
import { everything } from '../workers/sharing.ts'
import { createAssess, IN_CONFLICT, typesAndStatesOf, type Assess, type DispatchTable } from './assess.ts'
import { createAskHeld } from './claims/ask-held.ts'
import { createBranchCheck } from './claims/branch-check.ts'
import { createClaims } from './claims/claims.ts'
import { createContest } from './claims/contest.ts'
import { createOutcomeLog } from './outcome-log.ts'
import { createResolve } from './conflicts/resolve.ts'
import { Counts } from './counts.ts'
import { Dispatch } from './dispatch.ts'
import type { EngineOptions } from './engine-options.ts'
import { createExecute } from './execute.ts'
import { Arrivals } from './finding/arrivals.ts'
import { Backlog } from './finding/backlog.ts'
import { DueQueue } from './finding/due.ts'
import { createLanes } from './finding/lanes.ts'
import { createLook } from './finding/look.ts'
import { createReadInParts } from './finding/read.ts'
import { createRounds } from './finding/rounds.ts'
import { Watch } from './finding/watch.ts'
import { createRunAttempt } from './run-attempt.ts'
import { createLife } from './life.ts'
import { Quarantine } from './quarantine.ts'
import { createRecover } from './recover.ts'
import { createSaveOutcome } from './save-outcome.ts'
import { createStamp } from './stamp.ts'
import { createWriteDoc } from './write-doc.ts'
import { declaredStates, type UndeclaredCount } from './undeclared.ts'
import { createWaits } from './waits.ts'

/**
 * What an engine consists of, put together; nothing runs yet. `signal` breaks off every request; once `closing` is
 * aborted, what is taken up is given back.
 */
export function createParts(options: EngineOptions, signal: AbortSignal, closing: AbortSignal) {
  const { database, mailer, workers, events, worker, clock, random, log } = options
  const {
    part = everything,
    counts = new Counts(),
    byteBudget = createByteBudget(12 * 1024 * 1024),
    turns = new Semaphore(() => 2),
    quarantine = new Quarantine(options.clock),
    leaseMs = 30_000,
    sweepMs = 60_000,
    heartbeatMs,
    visit,
  } = options
  const { machines } = options.table
  const ticks = () => clock.ticks()
  const waits = visit?.waits ?? createWaits(ticks)

  const timeoutMs = leaseMs / 2 // what is not answered must not cost the others their claims
  const writer = createWriter(database, { signal, timeoutMs, counts: counts.writes, turns })
  const askHeld = createAskHeld({ turns, timeoutMs, signal })
  const writeDoc = createWriteDoc({ database, writer, askHeld, clock, random, signal, closing, log })
  const contest = createContest({ database, writeDoc, askHeld, leaseMs, clock, random, signal })
  const claims = createClaims({ writeDoc, contest, worker, leaseMs, clock, random })
  const branchCheck = createBranchCheck({ database, askHeld, clock, random, signal })
  const life = createLife(events, database.name, counts)
  const execute = createExecute({
    ...{ database, writer, writeDoc, mailer, workers, events, life, machines, ticks, log },
    now: () => clock.now(),
  })
  const tell = createOutcomeLog({ database: database.name, clock, log, signal })
  const saveOutcome = createSaveOutcome({ writeDoc, claims, machines, life, tell, clock, random, log })
  const laneOf = createLanes(byteBudget, (registration) =>
    createRunAttempt({
      registration,
      claims,
      branchCheck,
      execute,
      saveOutcome,
      quarantine,
      life,
      ticks,
      log,
      closing,
    }),
  )
  let current = workOut(options.table)
  const assess: Assess = (doc, now) => current.assess(doc, now)
  const due = new DueQueue(clock, sweepMs * 2)
  if (visit?.nextAt !== undefined) due.later(visit.nextAt)
  const dispatch = new Dispatch({
    ...{ assess, laneOf, due, leases: waits.leases, counts, clock, log },
    isOurs: ({ _id, _conflicts, type, state }) =>
      part.isOurs({ type: String(type), state: _conflicts ? IN_CONFLICT : String(state) }, _id),
    recover: { run: createRecover({ writeDoc, life, clock, random, log }), share: byteBudget.share() },
    resolve: {
      run: createResolve({ database, writer, table: options.table, due, waits, life, clock, log, signal }),
      share: byteBudget.share(),
    },
    stamp: createStamp({ writeDoc, clock, log }),
    onFull: (lane) => backlog.add(lane),
  })
  const readInParts = createReadInParts(database, dispatch.attempts, log)
  const look = createLook(dispatch, readInParts)
  const backlog = new Backlog({ database, part, look, clock, random, log })
  const arrivals = new Arrivals({
    ...{ part, assess, dispatch, backlog, readInParts, clock, random },
    onUndeclared: () => visit && rounds.listSoon(), // one that is followed is listed every minute
  })
  const checkpoints = visit?.checkpoints ?? createCheckpointStore(database, worker)
  const watch = new Watch({
    ...{ database, part, arrivals, checkpoints, life, clock, random, log },
    onReplaced: (stopped) => {
      dispatch.forgetPast()
      return prepare(stopped)
    },
    onDdoc: matchAgain,
    ...(heartbeatMs && { heartbeatMs }),
    read: visit?.read,
  })
  const rounds = createRounds({
    ...{ database, part, due, look, backlog, sweepMs, clock, random, log, prepare },
    table: () => current.table,
    undeclared: noteUndeclared,
    sweepFirst: visit?.listFirst ?? true,
    whenCaughtUp: async () => {
      await watch.caughtUp
      await arrivals.whenRead()
      await dispatch.attempts.whenIdle()
    },
  })

  /** What is handled now: after a deploy it may be more. */
  function workOut(table: DispatchTable) {
    for (const pair of typesAndStatesOf(table)) counts.of(pair) // what has not happened yet is told, too
    return { table, assess: createAssess(table) }
  }

  function noteUndeclared(now: readonly UndeclaredCount[]): void {
    const before = counts.undeclared.get(database.name) ?? []
    for (const { type, state, count } of now) {
      if (before.some((one) => one.type === type && one.state === state)) continue
      const declared = declaredStates(current.table.machines, type, state)
      log.warn({ type, state, count, declared }, 'documents are in a state that their machine does not declare')
    }
    if (now.length > 0) counts.undeclared.set(database.name, now)
    else counts.undeclared.delete(database.name)
  }

  async function prepare(stopped: AbortSignal): Promise<void> {
    try {
      await options.prepare?.(stopped)
    } catch (thrown) {
      if (!(thrown instanceof CouchError)) throw thrown
      log.warn({ code: thrown.code, reason: thrown.message }, 'the design document could not be brought')
    }
  }

  async function matchAgain(rev: string, stopped: AbortSignal): Promise<void> {
    const table = (await options.matchAgain?.(rev, stopped)) ?? current.table
    if (table === current.table) return
    current = workOut(table)
    rounds.listSoon()
  }

  return { counts, claims, due, dispatch, backlog, arrivals, watch, rounds }
}
