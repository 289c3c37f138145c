import { createByteBudget } from '../core/byte-budget.ts'
import { Semaphore } from '../core/semaphore.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { createWriter } from '../couch/writer.ts'
import { createCheckpointStore } from '../feed/checkpoint-store.ts'
import { everything, type Partition, type TypeAndState } from '../workers/partitioning.ts'
import {
  createClassify,
  deletedOf,
  IN_CONFLICT,
  typesAndStatesOf,
  type Classify,
  type DispatchTable,
} from './classify.ts'
import { createReadHeld } from './claims/read-held.ts'
import { createBranchCheck } from './claims/branch-check.ts'
import { createClaims } from './claims/claims.ts'
import { Lease } from './claims/lease.ts'
import { createContest } from './claims/contest.ts'
import { createWinClaim } from './claims/win-claim.ts'
import { createOutcomeLog } from './outcome-log.ts'
import { createResolve } from './conflicts/resolve.ts'
import { Counters } from './counters.ts'
import { Dispatch } from './dispatch.ts'
import type { EngineOptions } from './engine-options.ts'
import { createExecute } from './execute.ts'
import { RowDispatcher } from './finding/row-dispatcher.ts'
import { Backlog } from './finding/backlog.ts'
import { DelayQueue } from './finding/delay-queue.ts'
import { createHandlerQueues } from './finding/handler-queues.ts'
import { createReadAndDispatch } from './finding/read-and-dispatch.ts'
import { listPagesOf, type ListPages } from './finding/pages.ts'
import { createReadInParts } from './finding/read.ts'
import { createResync } from './finding/resync.ts'
import { createDeletions } from './finding/deletions.ts'
import { createFeedPlaces } from './finding/feed-places.ts'
import { createSelectedChanges } from './finding/selected-changes.ts'
import { createListSince, isSinceNow } from './finding/since.ts'
import { Watch } from './finding/watch.ts'
import { createRunAttempt } from './run-attempt.ts'
import { createTelemetry } from './telemetry.ts'
import { Quarantine } from './quarantine.ts'
import { createRescue } from './rescue.ts'
import { createSaveOutcome } from './save-outcome.ts'
import { createShadows } from './shadows.ts'
import { createTraces, untraced } from './traces.ts'
import { createWriteDoc } from './write-doc.ts'
import { UndeclaredLog, type UndeclaredCount } from './undeclared.ts'
import { createWaits } from './waits.ts'
import { keyOrNone } from './keys.ts'
import { ownLimits } from './handler-limits.ts'

/**
 * Creates and connects the parts of an engine; nothing runs yet. An abort of `signal` cancels every request. After an
 * abort of `closing`, documents that were taken are given back.
 */
export function createParts(options: EngineOptions, signal: AbortSignal, closing: AbortSignal) {
  const { database, workers, events, worker, clock, random, log } = options
  const {
    counts = new Counters(),
    byteBudget = createByteBudget(12 * 1024 * 1024),
    turns = new Semaphore(() => 2),
    quarantine = new Quarantine(options.clock),
    control = database,
    limits = ownLimits({ control, clock, random, log, signal }),
    lease = new Lease({ leaseMs: 30_000, clock, log }),
    resyncMs = 60_000,
    heartbeatMs,
    visit,
  } = options
  const { machines } = options.table
  const traces = options.tracing ? createTraces(options.tracing, database.name) : untraced
  const mailer = traces.mail(options.mailer)
  const partition = withKeys(options.partition ?? everything, () => current.keyed.length > 0)
  const ticks = () => clock.ticks()
  const waits = visit?.waits ?? createWaits(ticks)

  const leaseMs = lease.configuredMs
  const writer = createWriter(database, { signal, timeout: lease, counts: counts.writes, turns })
  const readHeld = createReadHeld({ turns, timeout: lease, leaseMs, clock, random, signal })
  const writeDoc = createWriteDoc({ database, writer, readHeld, leaseMs, clock, random, signal, closing, log })
  const contest = createContest({ database, writeDoc, readHeld, leaseMs, clock, random, signal })
  const claims = createClaims({ writeDoc, contest, worker, lease, clock })
  const branchCheck = createBranchCheck({ database, readHeld, copies: visit?.copies })
  const telemetry = createTelemetry(events, database.name, ticks, counts)
  const execute = traces.handler(
    createExecute({
      ...{ database, writer, writeDoc, mailer, workers, events, telemetry, machines, clock, signal, log },
    }),
  )
  const { recentFailures } = options
  const logOutcome = createOutcomeLog({ database: database.name, recentFailures, clock, log, signal })
  const saveOutcome = traces.save(
    createSaveOutcome({ writeDoc, claims, machines, telemetry, logOutcome, clock, random, log }),
  )
  const lookAgain = (id: string) => dispatch.lookAgain(id)
  const queueOf = createHandlerQueues(byteBudget, lookAgain, (registration, keys) =>
    traces.attempt(
      createRunAttempt({
        ...{ registration, keys, claims, execute, saveOutcome, quarantine, telemetry, ticks, closing },
        limit: limits.of(registration),
        unread: () => watch.lag.changes,
        winClaim: traces.claim(createWinClaim({ registration, claims, branchCheck, telemetry, log, closing })),
      }),
    ),
  )
  let current = workOut(options.table)
  const classify: Classify = (doc, now) => current.classify(doc, now)
  const delayQueue = new DelayQueue(clock, resyncMs * 2)
  if (visit?.nextAt !== undefined) delayQueue.later(visit.nextAt)
  const shadows = createShadows({
    ...{ database, telemetry, events, clock, log, signal, closing },
    table: () => current.table,
    isOurs: (pair, id) => partition.isOurs(pair, id),
  })
  /** Records that documents wait for the end of a pause. */
  const onPaused = ({ type, state }: TypeAndState) => void visit?.paused.add(`${type}/${state}`)
  const isPaused = (pair: TypeAndState) => limits.isPaused(pair)
  /** A visit has no resync of its own. On a cluster, no row may bring what another writer has left: the list does. */
  const onTrouble = () => {
    if (visit && visit.copies !== 1) delayQueue.later(clock.now() + resyncMs)
  }
  const dispatch = new Dispatch({
    onPaused,
    onTrouble,
    shadows,
    ...{ classify, queueOf, writeDoc, delayQueue, leases: waits.leases, counts, clock, log },
    isOurs(doc) {
      const { _id, _conflicts, type, state } = doc
      const pair = { type: String(type), state: _conflicts ? IN_CONFLICT : String(state) }
      const keyed = current.keyed.find((one) => one.type === pair.type && one.state === pair.state)
      return partition.isOurs(pair, (keyed && keyOrNone(keyed, doc)) ?? _id)
    },
    rescue: { run: createRescue({ writeDoc, telemetry, clock, random, log }), share: byteBudget.share() },
    resolve: {
      run: createResolve({ database, writer, table: options.table, delayQueue, waits, telemetry, clock, log, signal }),
      share: byteBudget.share(),
    },
    onFull: (queue) => backlog.add(queue),
  })
  const readInParts = createReadInParts(database, dispatch.attempts, log)
  const readAndDispatch = createReadAndDispatch(dispatch, readInParts)
  const places = createFeedPlaces({ database, control, known: visit?.places, clock, random })
  const selectedChanges = createSelectedChanges(database)
  const listSince = createListSince(places, selectedChanges)
  const listAll = listPagesOf(database)
  const listPages: ListPages = (pair, status, until, signal) =>
    status === 'ready' && current.sinceNow.some((one) => one.type === pair.type && one.state === pair.state)
      ? listSince(pair, signal)
      : listAll(pair, status, until, signal)
  const backlog = new Backlog({ listPages, partition, readAndDispatch, clock, random, log })
  let isEarly = true
  const rowDispatcher = new RowDispatcher({
    ...{ partition, classify, dispatch, backlog, readInParts, clock, random },
    isEarly: () => isEarly && current.sinceNow.length > 0,
    isLeftToList: (doc) =>
      current.sinceNow.some(({ type, state }) => type === doc.type && state === doc.state) &&
      ['ready', 'untimed'].includes(classify(doc, clock.now()).kind),
    onDeleted: () => deletions.soon(),
    onUndeclared(doc) {
      undeclaredLog.passed(doc)
      if (visit) resync.soon() // a followed database is listed every minute
    },
  })
  const undeclaredLog = new UndeclaredLog({
    machines: () => current.table.machines,
    counted: () => counts.undeclared.get(database.name) ?? [],
    log,
  })
  const checkpoints = visit?.checkpoints ?? createCheckpointStore(database, worker)
  const watch = new Watch({
    ...{ database, partition, rowDispatcher, checkpoints, telemetry, clock, random, log },
    onStart: (stopped) => places.begin(placed(), visit?.first, stopped),
    onCaughtUp() {
      if (isEarly && current.sinceNow.length > 0) resync.soon()
      isEarly = false
    },
    onRestarted: () => (isEarly = true),
    async onReplaced(stopped) {
      dispatch.forgetPast()
      places.clear()
      await prepare(stopped)
      await places.begin(placed(), undefined, stopped)
    },
    onDdoc: matchAgain,
    ...(heartbeatMs && { heartbeatMs }),
    read: visit?.read,
  })
  const resync = createResync({
    ...{ database, partition, listPages, delayQueue, readAndDispatch, backlog, resyncMs, clock, random, log, prepare },
    table: () => current.table,
    undeclared: noteUndeclared,
    ...{ isPaused, onPaused },
    isInProgress: (id) => dispatch.attempts.has(id),
    resyncFirst: (visit?.listFirst ?? true) || current.sinceNow.length > 0,
    whenCaughtUp: async () => {
      await watch.caughtUp
      await rowDispatcher.whenRead()
      await dispatch.attempts.whenIdle()
    },
  })

  limits.onResumed(() => resync.soon(), closing)

  const deletions = createDeletions({
    ...{ database, control, partition, places, selectedChanges, clock, random, log },
    table: () => current.table,
    everyMs: resyncMs,
  })

  /** Types and states with a feed position of their own. */
  function placed({ sinceNow, table } = current): readonly TypeAndState[] {
    return [...sinceNow, ...(table.deletions ?? []).map(deletedOf)]
  }

  /** Prepares a dispatch table: after a deploy it may have more handlers. */
  function workOut(table: DispatchTable) {
    for (const pair of typesAndStatesOf(table)) counts.of(pair) // creates the counters, so that metrics show zeros
    const keyed = table.registrations.filter(({ options }) => options.key !== undefined)
    const sinceNow = table.registrations.filter(isSinceNow)
    return { table, keyed, sinceNow, classify: createClassify(table, (registration) => limits.isPaused(registration)) }
  }

  function noteUndeclared(now: readonly UndeclaredCount[]): void {
    undeclaredLog.resynced(now)
    if (now.length > 0) counts.undeclared.set(database.name, now)
    else counts.undeclared.delete(database.name)
  }

  async function prepare(stopped: AbortSignal): Promise<void> {
    try {
      await options.prepare?.(stopped)
    } catch (thrown) {
      if (!(thrown instanceof CouchError)) throw thrown
      log.warn({ code: thrown.code, reason: thrown.message }, 'cannot deploy the design document')
    }
  }

  async function matchAgain(rev: string, stopped: AbortSignal): Promise<void> {
    const table = (await options.matchAgain?.(rev, stopped)) ?? current.table
    if (table === current.table) return
    const next = workOut(table)
    await places.begin(placed(next), undefined, stopped)
    current = next
    resync.soon()
  }

  return { counts, claims, delayQueue, dispatch, backlog, rowDispatcher, watch, resync, deletions }
}

/** With keys, an id does not determine the worker of a document. */
const withKeys = (partition: Partition, hasKeys: () => boolean): Partition => ({
  isOurs: (pair, key) => partition.isOurs(pair, key),
  isOursAnywhere: (id) => (hasKeys() && partition.hasEquals() ? undefined : partition.isOursAnywhere(id)),
  hasEquals: () => !hasKeys() && partition.hasEquals(),
  onChange: (listener, signal) => partition.onChange(listener, signal),
})
