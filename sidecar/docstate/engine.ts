import { setMaxListeners } from 'node:events'
import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { createMemory, type Memory } from '../core/memory.ts'
import { within } from '../core/within.ts'
import type { Database } from '../couch/database.ts'
import { CouchError, type CouchErrorCode } from '../couch/errors.ts'
import { createWriter } from '../couch/writer.ts'
import { createPlaceStore, type PlaceStore, type Rest } from '../feed/place-store.ts'
import type { Events } from '../events/channels.ts'
import type { Registry } from '../workers/registry.ts'
import { everything, type Part } from '../workers/sharing.ts'
import { createAssess, IN_CONFLICT, placesOf, type DispatchTable } from './assess.ts'
import { Arrivals } from './finding/arrivals.ts'
import { Backlog } from './finding/backlog.ts'
import { createClaims } from './claims/claims.ts'
import { createContest } from './claims/contest.ts'
import { Counts } from './counts.ts'
import { Dispatch } from './dispatch.ts'
import { DueQueue } from './finding/due.ts'
import { createExecute } from './execute.ts'
import { createFly } from './fly.ts'
import { createLife } from './life.ts'
import { createLanes } from './finding/lanes.ts'
import { createLook } from './finding/look.ts'
import { createReadInParts } from './finding/read.ts'
import type { MailBinding } from './mail.ts'
import { createRecover } from './recover.ts'
import { createResolve } from './conflicts/resolve.ts'
import { createRounds } from './finding/rounds.ts'
import { createSettle } from './settle.ts'
import { createStamp } from './stamp.ts'
import { createStore } from './store.ts'
import { Watch, type ReadFeed } from './finding/watch.ts'

export interface EngineOptions {
  readonly database: Database
  readonly table: DispatchTable
  readonly mailer: MailBinding
  /** For handlers, as `ctx.workers`. */
  readonly workers: Registry
  /** Where what happens is told; for handlers, as `ctx.events`. */
  readonly events: Events
  /** Name of this worker, as it stands in claims. */
  readonly worker: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** This worker's part in the documents. Default everything. */
  readonly part?: Part
  /** Added to; those who share it are counted together, in `health()` too. Default one of its own. */
  readonly counts?: Counts
  /** For documents in flight; one for all engines of a process. Default 12 MB of its own. */
  readonly memory?: Memory
  /** How long a claim is believed without a sign of life. Default 30 s. */
  readonly leaseMs?: number
  /** How long running handlers may take to end when the sidecar stops. Default 10 s. */
  readonly graceMs?: number
  /** Time between two looks at everything that is in a handled state. Default 60 s. */
  readonly sweepMs?: number
  /** Sign of life asked of the server. Default 10 s. */
  readonly heartbeatMs?: number
  /** For a database that is visited now and then; one that is followed has none. */
  readonly visit?: Visit
  /** Brings the design document into the database where it is missing: the database was made again. */
  readonly prepare?: (signal: AbortSignal) => Promise<unknown>
}

/** How a database is visited: see docs/designs/many-databases.md. */
export interface Visit {
  readonly read: ReadFeed
  /** Where the place is kept, for the next visit. */
  readonly places: PlaceStore
  /** Whether there may be documents before the place that wait: then it begins with the list. */
  readonly listFirst: boolean
  /** Otherwise: when the next of them is due, milliseconds since the epoch. */
  readonly nextAt: number | undefined
}

export interface EngineHealth {
  readonly database: string
  /** Its feed is being read; of a database that is visited: it can be. */
  readonly following: boolean
  /** Documents between claim and save. */
  readonly inFlight: number
  /** Documents that were taken up. */
  readonly taken: number
  /** Times the feed began again from its start. */
  readonly rewinds: number
  /** Documents that were reached for, and another worker had won. */
  readonly inVain: number
  /** Conflicts that were resolved. */
  readonly conflicts: number
  /** Code of why the feed cannot be read now. */
  readonly trouble: CouchErrorCode | undefined
}

/** How far an engine is behind its database. */
export interface EngineLag {
  /** Changes that CouchDB has said are still to be read. */
  readonly unread: number
  /** Changes that were read, of which it is not yet done, or written down, what they ask for. */
  readonly unsettled: number
  /** For how long the feed is not known to be read to its end, milliseconds; 0 if it is. */
  readonly behindMs: number
  /** Handlers whose documents wait in the list, since there is no room for them. */
  readonly slowHandlers: number
}

/** The engine of one database: everything between its feed and the last save. */
export interface Engine {
  /** Works until the signal aborts; resolves when everything is settled or given back. Once only. */
  run(signal: AbortSignal): Promise<void>
  health(): EngineHealth
  lag(): EngineLag
  /** That nothing is left to do now, and until when; undefined while there is something. */
  rest(): Rest | undefined
  /** What it has done, and what others have that share them. */
  readonly counts: Counts
}

/** How long what is left of the grace period's end may take: telling handlers to stop and writing that down. */
const LAST_WORDS_MS = 2000
/** What is due so soon is waited for. */
const SOON_MS = 5000

export function createEngine(options: EngineOptions): Engine {
  const { database, table, mailer, workers, events, worker, clock, random, log } = options
  const {
    part = everything,
    counts = new Counts(),
    memory = createMemory(12 * 1024 * 1024),
    leaseMs = 30_000,
    graceMs = 10_000,
    sweepMs = 60_000,
    heartbeatMs,
    visit,
  } = options
  const { machines } = table
  const hard = new AbortController()
  const soft = new AbortController()
  setMaxListeners(0, hard.signal, soft.signal) // one for each request and sleep under way
  const ticks = () => clock.ticks()
  let closed = false
  let started = false

  for (const place of placesOf(table)) counts.of(place) // what has not happened yet is told, too
  const answerMs = leaseMs / 2 // a write without an answer must not cost us our claims
  const writer = createWriter(database, hard.signal, answerMs, counts.writes)
  const store = createStore({ database, writer, clock, random, signal: hard.signal })
  const contest = createContest({ database, store, leaseMs, clock, random, signal: hard.signal })
  const claims = createClaims({ store, contest, worker, leaseMs, clock, random })
  const life = createLife(events, database.name, counts)
  const execute = createExecute({
    ...{ database, writer, store, mailer, workers, events, life, machines, ticks, log },
    now: () => clock.now(),
  })
  const settle = createSettle({ store, claims, machines, life, clock, random, log })
  const laneOf = createLanes(memory, (registration) =>
    createFly({ registration, claims, execute, settle, life, ticks, log, closed: () => closed }),
  )
  const assess = createAssess(table)
  const due = new DueQueue(clock, sweepMs * 2)
  if (visit?.nextAt !== undefined) due.later(visit.nextAt)
  const dispatch = new Dispatch({
    ...{ assess, laneOf, due, counts, clock, log },
    isOurs: ({ _id, _conflicts, type, state }) =>
      part.isOurs({ type: String(type), state: _conflicts ? IN_CONFLICT : String(state) }, _id),
    recover: { fly: createRecover({ store, laneOf, life, clock, log }), share: memory.share() },
    resolve: {
      fly: createResolve({
        ...{ database, writer, table, due, life, clock, log },
        signal: hard.signal,
      }),
      share: memory.share(),
    },
    stamp: createStamp({ store, clock, log }),
    onFull: (lane) => backlog.add(lane),
  })
  const readInParts = createReadInParts(database, dispatch.flights, log)
  const look = createLook(dispatch, readInParts)
  const backlog = new Backlog({ database, part, look, clock, random, log })
  const arrivals = new Arrivals({ part, assess, dispatch, backlog, readInParts, clock, random })
  const places = visit?.places ?? createPlaceStore(database, worker)
  const watch = new Watch({
    database,
    part,
    arrivals,
    places,
    life,
    clock,
    random,
    log,
    onRecreated: (signal) => {
      dispatch.forgetPast()
      return prepare(signal)
    },
    ...(heartbeatMs && { heartbeatMs }),
    read: visit?.read,
  })
  const rounds = createRounds({
    ...{ database, table, part, due, look, backlog, sweepMs, clock, random, log, prepare },
    sweepFirst: visit?.listFirst ?? true,
    whenCaughtUp: async () => {
      await watch.caughtUp
      await arrivals.whenRead()
      await dispatch.flights.whenIdle()
    },
  })

  async function prepare(signal: AbortSignal): Promise<void> {
    try {
      await options.prepare?.(signal)
    } catch (thrown) {
      if (!(thrown instanceof CouchError)) throw thrown
      log.warn({ code: thrown.code, reason: thrown.message }, 'the design document could not be brought')
    }
  }

  function rest(): Rest | undefined {
    const isReading = !watch.atEnd || arrivals.isReading || rounds.isBusy
    const isAtWork = isReading || dispatch.flights.size + backlog.size > 0 || due.nextKept() < clock.now() + SOON_MS
    const nextAt = due.nextAt()
    return isAtWork ? undefined : { nextAt: nextAt === Infinity ? undefined : nextAt }
  }

  async function finish(): Promise<void> {
    const left = visit && rest()
    closed = true
    const settled = await within(clock, graceMs, dispatch.flights.whenIdle())
    if (!settled) {
      dispatch.flights.stop(new Error('the sidecar stops'))
      await within(clock, LAST_WORDS_MS, dispatch.flights.whenIdle())
    }
    await within(clock, LAST_WORDS_MS, watch.savePlace(hard.signal, left))
    hard.abort(new Error('the sidecar has stopped'))
  }

  return {
    async run(signal) {
      if (started) throw new Error(`the engine of ${database.name} was started twice`)
      started = true
      const kept = claims.keep(hard.signal)
      const stop = () => soft.abort(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      const loops = [watch, arrivals, backlog].map((part) => part.run(soft.signal))
      loops.push(rounds.lookAtDue(soft.signal), rounds.sweepNowAndThen(soft.signal))
      try {
        await Promise.race(loops) // each runs until the signal, or breaks by a mistake of ours: then all end
      } catch (thrown) {
        if (!signal.aborted) throw thrown
      } finally {
        stop()
        await Promise.allSettled(loops)
        await finish()
        await kept
        signal.removeEventListener('abort', stop)
      }
    },
    health: () => ({
      database: database.name,
      following: visit ? watch.trouble === undefined : watch.following,
      inFlight: dispatch.flights.size,
      taken: dispatch.flights.started,
      rewinds: counts.feed.rewound,
      inVain: counts.inVain,
      conflicts: counts.conflicts.resolved,
      trouble: watch.trouble?.code,
    }),
    lag: () => ({
      unread: watch.lag.changes,
      unsettled: watch.unsettled,
      behindMs: watch.lag.ms,
      slowHandlers: backlog.size,
    }),
    rest,
    counts,
  }
}
