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
import { Gather } from './gather.ts'
import { Ledger } from './ledger.ts'
import type { GlobalChangesSettings } from './event-settings.ts'
import type { BucketPartition } from './bucket-partition.ts'
import { Sources } from './sources.ts'
import { createSweep } from './event-sweep.ts'
import { createPeriodicRun } from '../../core/periodic.ts'

export interface GlobalChangesOptions {
  readonly couch: Couch
  /** The database for event documents; created if it is missing. */
  readonly name: string
  /** Whether the server may have a feed of all databases. Default true. */
  readonly mayHaveFeed?: boolean
  /** Reads all databases. Default: through `couch`. */
  readonly survey?: Survey
  /** Shared by all periodic runs of the process (`core/periodic.ts`). */
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
  /** Documents that wait in the second window, or for another attempt to write them. */
  readonly pendingWrites: number
  /** Documents written. */
  readonly written: number
  /** Requests made to write them. */
  readonly requests: number
  /** Conflicting revisions found in them (expected: none). */
  readonly conflicts: number
  /** Databases with an event that only a sweep found. */
  readonly swept: number
  /** How long the oldest known event has waited to be written, milliseconds; 0 if all are written. */
  readonly lagMs: number
  /** Time since the last completed sweep began, milliseconds. 0 while events are off. */
  readonly sweptMsAgo: number
}

/** Records which databases were created, changed and deleted. */
export interface GlobalChanges {
  /** Runs until the signal aborts, then writes pending events. Call it once only. */
  run(signal: AbortSignal): Promise<void>
  change(settings: GlobalChangesSettings): void
  counts(): GlobalChangesCounts
}

/** The longest pause between two sweeps where the server has no feed of all databases. */
const SWEEP_ALONE_MS = 5000
/** Delay of a report: a server gathers for half a second, twice; without its feed, only this process gathers. */
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
  /** Position of the database with the events. */
  let known: Reading | undefined
  /** Whether the database lacks events that the ledger has. */
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
    onEvent: (event, database) => gather.add(event, database),
    onGap: () => sweeps.soon(),
  })

  /** How long the event of a recent change may still be on its way, milliseconds. */
  function underWayMs(): number {
    const { max_event_delay, max_write_delay } = settings
    return Math.min(MOST_UNDER_WAY_MS, max_event_delay + max_write_delay + (sources.hasServerFeed ? SERVER_MS : OWN_MS))
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    const began = clock.ticks()
    await makeSure(signal)
    await ledger.own(partition.buckets(), signal)
    if (hasLost) await ledger.findLost(signal)
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

  /** Reads the missing parts of the ledger. An event that is written before this read cannot be recorded. */
  async function load(signal: AbortSignal): Promise<void> {
    const buckets = partition.buckets()
    if ([...buckets].every((bucket) => ledger.has(bucket))) return
    await makeSure(signal)
    await ledger.own(buckets, signal)
  }

  /** Reads the position of the database with the events. Throws `CouchError`. */
  async function read(signal: AbortSignal): Promise<Reading> {
    const { instance_start_time: life, update_seq } = await database.info({ signal })
    return Object.assign(extentOf(update_seq), { life })
  }

  /** Makes sure that the database with the events exists, and that the ledger describes this database. */
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
    ledger.forget() // all written events are lost
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
