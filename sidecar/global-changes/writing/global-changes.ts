import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { Condition } from '../../core/condition.ts'
import { together } from '../../core/together.ts'
import { untilAny } from '../../core/until-any.ts'
import { withTimeout } from '../../core/timeout.ts'
import type { Couch } from '../../couch/client.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { makeClosedDatabase } from '../../couch/make-closed-database.ts'
import { extentOf, filesAfter, isBehind } from '../../couch/shard-seqs.ts'
import { createSurvey, type Reading, type Survey } from '../../couch/survey.ts'
import { Coverage } from './coverage.ts'
import { EventWriter } from './event-writer.ts'
import { findLost } from './find-lost.ts'
import { Gather } from './gather.ts'
import { Ledger } from './ledger.ts'
import type { GlobalChangesSettings } from './event-settings.ts'
import type { BucketPartition } from './bucket-partition.ts'
import { Sources } from './sources.ts'
import { createSweep } from './event-sweep.ts'
import { createPeriodicRun } from '../../core/periodic.ts'

export interface GlobalChangesOptions {
  readonly couch: Couch
  /** The database that the events are written into; made where it is missing. */
  readonly name: string
  /** Whether the server may have a feed of all databases. Default true. */
  readonly mayHaveFeed?: boolean
  /** Looks at all databases. Default: by `couch`. */
  readonly survey?: Survey
  /** Common to the periodic runs of the process (`core/periodic.ts`). */
  readonly alignedTo?: number
  readonly partition: BucketPartition
  readonly settings: GlobalChangesSettings
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface GlobalChangesCounts {
  /** Whether events are gathered and written. */
  readonly on: boolean
  /** Events that wait in the first window. */
  readonly pendingEvents: number
  /** Documents that wait in the second, or for a write that has failed. */
  readonly pendingWrites: number
  /** Documents written. */
  readonly written: number
  /** Requests made to write them. */
  readonly requests: number
  /** Branches found in them: there should be none. */
  readonly conflicts: number
  /** Databases about which a sweep had something to tell. */
  readonly swept: number
  /** For how long the first event has waited that is known and not yet written, milliseconds; 0 if all are. */
  readonly lagMs: number
  /** Since the last look at all databases began that came to its end, milliseconds. 0 while it is off. */
  readonly sweptMsAgo: number
}

/** Writes down which databases were made, changed and deleted. */
export interface GlobalChanges {
  /** Until the signal aborts; then what is pending is written. Once only. */
  run(signal: AbortSignal): Promise<void>
  change(settings: GlobalChangesSettings): void
  counts(): GlobalChangesCounts
}

/** The longest pause between two sweeps where the server has no feed of all databases. */
const SWEEP_ALONE_MS = 5000
/** What a server takes to tell of a change: it gathers for half a second, twice. Without it we gather only. */
const [SERVER_MS, OWN_MS] = [1500, 100]
const MOST_UNDER_WAY_MS = 5000
const LAST_WORDS_MS = 2000
const WHO_IS_THERE_MS = 3000

export function createGlobalChanges(options: GlobalChangesOptions): GlobalChanges {
  const { couch, name, mayHaveFeed = true, partition, clock, random, log } = options
  const database = couch.db(name)
  const hard = new AbortController()
  const hasEvents = (other: string) => other !== name && other !== '_global_changes'
  const switched = new Condition()
  let { settings } = options
  let swept = 0
  let sweptAt = clock.ticks()
  /** Of the database of the events. */
  let known: Reading | undefined
  /** It lacks events that the ledger has. */
  let hasLost = false

  const ledger = new Ledger(database)
  const coverage = new Coverage(couch, ledger, clock)
  const writer = new EventWriter({
    ...{ database, clock, random, log, signal: hard.signal },
    onMissing: () => beginAnew(hard.signal),
    plan: async (ids) => {
      await load(hard.signal)
      return coverage.plan(ids, hard.signal)
    },
  })
  const write = (ids: Iterable<string>) => writer.add(ids)
  const gather = new Gather({ clock, settings: () => settings, partition, hasEvents, write })
  const lookAtAll = createSweep({
    survey: options.survey ?? createSurvey(couch),
    ledger,
    coverage,
    clock,
    underWayMs,
    hasEvents,
    write,
  })
  const sweeps = createPeriodicRun({
    ...{ alignedTo: options.alignedTo, clock, random, log, sweep },
    everyMs: () =>
      sources.hasServerFeed ? settings.sweep_interval : Math.min(SWEEP_ALONE_MS, settings.sweep_interval),
  })
  const sources = new Sources({
    ...{ couch, mayHaveFeed, clock, random, log },
    tell: (event, database) => gather.tell(event, database),
    onGap: () => sweeps.soon(),
  })

  /** Of what has just happened. */
  function underWayMs(): number {
    const { max_event_delay, max_write_delay } = settings
    return Math.min(MOST_UNDER_WAY_MS, max_event_delay + max_write_delay + (sources.hasServerFeed ? SERVER_MS : OWN_MS))
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    const began = clock.ticks()
    await makeSure(signal)
    await ledger.own(partition.buckets(), signal)
    if (hasLost) await findLost(database, ledger, signal)
    hasLost = false
    const found = await lookAtAll(partition.buckets(), signal)
    swept += found.missed
    if (found.databases.length > 0) log.debug({ databases: found.databases.length }, 'a sweep has database events')
    sources.found(found.databases)
    await withTimeout(clock, MOST_UNDER_WAY_MS, writer.settled(), signal)
    await ledger.save(signal)
    const now = await read(signal)
    if (now.life === known?.life && !isBehind(now, known)) known = { ...now, files: filesAfter(now, known) }
    sweptAt = began
  }

  /** Reads the ledger where it is not read yet. An event that is written before cannot be noted. */
  async function load(signal: AbortSignal): Promise<void> {
    const buckets = partition.buckets()
    if ([...buckets].every((bucket) => ledger.has(bucket))) return
    await makeSure(signal)
    await ledger.own(buckets, signal)
  }

  /** How far the database of the events is. Throws `CouchError`. */
  async function read(signal: AbortSignal): Promise<Reading> {
    const { instance_start_time: life, update_seq } = await database.info({ signal })
    return Object.assign(extentOf(update_seq), { life })
  }

  /** That the database of the events is there, and is the one of which we know what is in it. */
  async function makeSure(signal: AbortSignal): Promise<void> {
    try {
      const now = await read(signal)
      if (known && known.life !== now.life) {
        ledger.forget()
        known = undefined
      } else if ((known && isBehind(now, known)) || (await ledger.isPutBack(signal))) {
        log.warn(`${name} was restored from an older copy; the missing events are written again`)
        ledger.forget()
        known = undefined
        hasLost = true
        sweeps.soon()
      }
      known = { ...now, files: filesAfter(now, known) }
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown
      await beginAnew(signal)
    }
  }

  async function beginAnew(signal: AbortSignal): Promise<void> {
    await makeClosedDatabase(couch, name, { signal })
    ledger.forget() // all that was written is gone
    sweeps.soon()
  }

  async function runWhileOn(signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const untilOff = async (until: AbortSignal) => {
      await switched.until(() => !settings.update_db, until).catch(() => undefined)
      ending.abort()
    }
    await untilAny([signal, ending.signal], async (on) => {
      partition.onChange(() => sweeps.soon(), on)
      await together([(until) => sources.run(until), (until) => sweeps.run(until), untilOff], on)
    })
  }

  async function finish(): Promise<void> {
    gather.flush()
    const save = async () => {
      await writer.settled()
      await ledger.save(hard.signal)
    }
    await withTimeout(
      clock,
      LAST_WORDS_MS,
      save().catch(() => undefined),
    )
    hard.abort(new Error('the sidecar has stopped'))
  }

  return {
    async run(signal) {
      await withTimeout(clock, WHO_IS_THERE_MS, partition.known, signal).catch(() => undefined)
      try {
        while (!signal.aborted) {
          if (settings.update_db) await runWhileOn(signal)
          else await switched.until(() => settings.update_db, signal).catch(() => undefined)
        }
      } finally {
        await finish()
      }
    },
    change(next) {
      if (!next.update_db) for (const part of [gather, writer, coverage]) part.clear()
      else if (!settings.update_db || next.sweep_interval !== settings.sweep_interval) sweeps.soon()
      settings = next
      gather.recheck()
      switched.changed()
    },
    counts() {
      const now = clock.ticks()
      return {
        on: settings.update_db,
        pendingEvents: gather.pending.events,
        pendingWrites: gather.pending.writes + writer.pending,
        ...writer.counts,
        swept,
        lagMs: now - (writer.since ?? gather.since ?? now),
        sweptMsAgo: settings.update_db ? now - sweptAt : 0,
      }
    },
  }
}
