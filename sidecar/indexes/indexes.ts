import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { isAmong } from '../core/glob.ts'
import { together } from '../core/together.ts'
import { withTimeout } from '../core/timeout.ts'
import type { Couch } from '../couch/client.ts'
import { freeDisk } from './disk.ts'
import { createPeriodicRun } from '../core/periodic.ts'
import { filesAfter, isBehind } from '../couch/shard-seqs.ts'
import { createSurvey, type Survey } from '../couch/survey.ts'
import type { Events } from '../events/channels.ts'
import type { NamePartition } from '../workers/name-partition.ts'
import { Book, type BookCounts } from './book.ts'
import { Builder } from './builder.ts'
import { Builds } from './builds.ts'
import { DesignDocsReader } from './design-docs.ts'
import type { Entry } from './entry.ts'
import { areAlike, kindsOf, type Kinds } from './kinds/kinds.ts'
import { Pace } from './pace.ts'
import { findServer, type Server } from './server.ts'
import { findServersKen, type ServersKen } from './server.ts'
import { checkSetting, type KenSettings, type NumberSetting } from './index-settings.ts'

export interface IndexesOptions {
  readonly couch: Couch
  /** The same server with separate connections, for requests that wait for a build. Default: `couch`. */
  readonly patient?: Couch
  /** Lists and reads all databases. Default: a survey by `couch`. */
  readonly survey?: Survey
  /** Common start of all periodic runs of the process, in ticks (`core/periodic.ts`). */
  readonly alignedTo?: number
  readonly partition: NamePartition
  readonly settings: KenSettings
  /** Delivers `database:*` events, and receives `index:*` events. */
  readonly events: Events
  /** Whether events report changed databases; otherwise periodic runs are more frequent. Default: yes. */
  readonly hasDatabaseEvents?: () => boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface IndexesCounts extends BookCounts {
  readonly queued: number
  readonly resubmitted: number
  /** Running builds. */
  readonly building: number
  readonly built: number
  readonly failures: number
  readonly lags: Builds['lags']
  /** Requests sent to the server. */
  readonly requests: number
  /** Databases that periodic runs found new or changed. */
  readonly swept: number
  /** Fraction of the channels in use: less than 1 if the server is slow. */
  readonly pace: number
  /** Why no build may begin now; undefined if builds may. */
  readonly paused: string | undefined
  readonly serversKen: ServersKen
}

/**
 * Brings every index up to date when its database has changed, like CouchDB's `ken`, and has ken's setters. A setter
 * returns the previous value, and throws `RangeError` for an invalid value.
 */
export interface Indexes {
  /** Runs until the signal aborts; started builds continue in the server. A second call throws. */
  run(signal: AbortSignal): Promise<void>
  change(settings: KenSettings): void
  /** Checks the indexes of a database, as if it had changed. */
  add(database: string): void
  /** Forgets a database. */
  remove(database: string): void
  setBatchSize(changes: number): number
  setDelay(ms: number): number
  setLimit(databases: number): number
  setPruneInterval(ms: number): number
  counts(): IndexesCounts
  /** The indexes that this worker builds. */
  entries(): Iterable<Entry>
}

/** Time between two periodic runs: with events, and without. */
const [SWEEP_MS, SWEEP_ALONE_MS] = [60_000, 5000]
/** How long changes are gathered before a check, if the server builds the same indexes at once. */
const GATHER_MS = 1000
/** Maximum wait for the other workers: until they are known, this worker would take all databases. */
const WHO_IS_THERE_MS = 3000

export function createIndexes(options: IndexesOptions): Indexes {
  const { partition, events, hasDatabaseEvents = () => true, clock, random, log } = options
  const pace = new Pace(clock)
  const patient = pace.count(options.patient ?? options.couch)
  const quick = pace.watch(pace.count(options.couch))
  const book = new Book()
  let { settings } = options
  let kinds: Kinds = {}
  let serversKen: ServersKen = 'unknown'
  let swept = 0
  let started = false

  const isBuiltHere = (database: string) => partition.isOurs(database) && !isAmong(database, settings.ignore)
  const builds = new Builds({ kinds: () => kinds, isShared: () => serversKen !== 'off', events, clock, log })
  const designDocs = new DesignDocsReader(quick)
  const builder = new Builder({
    ...{ book, builds, pace, designDocs, isBuiltHere, clock, random, log },
    ...{ kinds: () => kinds, workers: () => partition.workers(), settings: () => settings },
    gatherMs: () => (serversKen === 'on' ? GATHER_MS : 0),
  })
  const add = (database: string) => builder.add(database)
  const remove = (database: string) => builder.remove(database)
  const survey = options.survey ?? createSurvey(quick)
  const sweeps = createPeriodicRun({
    ...{
      alignedTo: options.alignedTo,
      clock,
      random,
      log,
      everyMs: () => (hasDatabaseEvents() ? SWEEP_MS : SWEEP_ALONE_MS),
    },
    async sweep(signal) {
      const server = await findServer(quick, { signal })
      take(kindsOf(server, { quick, patient }))
      await findKen(server, signal)
      await mindDisk(signal)
      swept += await lookAtAll(signal)
    },
  })

  function take(found: Kinds): void {
    if (areAlike(found, kinds)) return // new kinds would lose their state of the indexes
    kinds = found
    designDocs.forgetAll()
    for (const database of book.databases()) add(database)
    builder.recheck()
  }

  async function findKen(server: Server, signal: AbortSignal): Promise<void> {
    const found = await findServersKen(quick, server, { signal })
    if (found === 'on' && serversKen !== 'on')
      log.info('the server builds indexes itself (ken); the sidecar builds those that ken leaves out')
    serversKen = found
  }

  async function mindDisk(signal: AbortSignal): Promise<void> {
    const disk = await freeDisk(quick, { signal })
    const percent = disk && (disk.freeBytes / disk.totalBytes) * 100
    const isLow = percent !== undefined && percent < settings.min_free_disk
    const before = pace.lowDisk
    pace.lowDisk = isLow
      ? `${percent.toFixed(1)} % of the disk is free, less than ${settings.min_free_disk}`
      : undefined
    if (before === undefined && pace.lowDisk !== undefined) log.warn({ reason: pace.lowDisk }, 'no index is built')
    if (before !== undefined && pace.lowDisk === undefined) builder.recheck()
  }

  /**
   * Reads the positions of all databases. It adds new and changed databases, and removes those that are deleted or belong
   * to another worker. If an older copy was restored, it drops the known state of the indexes. Returns the number of
   * added databases. Throws `CouchError`.
   */
  async function lookAtAll(signal: AbortSignal): Promise<number> {
    const databases = await survey.list(isBuiltHere, signal)
    const existing = new Set(databases)
    for (const database of [...book.databases()]) if (!existing.has(database)) remove(database)
    let added = 0
    for await (const readings of survey.read(databases, signal)) {
      for (const [database, reading] of readings) {
        const known = book.get(database)
        const { life, changes, seq } = reading
        const before = known?.reading ?? reading
        if (known && (before.life !== life || isBehind(reading, before))) remove(database)
        else if (known) {
          known.reading = { life, changes, seq, files: filesAfter(reading, before) }
          if (known.seq === changes) continue
        }
        add(database)
        added += 1
      }
    }
    return added
  }

  function listen(signal: AbortSignal): void {
    events.subscribe('database:created', ({ event }) => add(event.database), { signal })
    events.subscribe('database:updated', ({ event }) => add(event.database), { signal })
    events.subscribe('database:deleted', ({ event }) => remove(event.database), { signal })
    partition.onChange(() => sweeps.soon(), signal)
  }

  function set(key: NumberSetting, value: number): number {
    checkSetting(key, value)
    const before = settings[key]
    settings = { ...settings, [key]: value }
    builder.recheck()
    return before
  }

  return {
    async run(signal) {
      if (started) throw new Error('the indexes were started twice')
      started = true
      await withTimeout(clock, WHO_IS_THERE_MS, partition.known, signal).catch(() => undefined)
      listen(signal)
      await together([(until) => builder.run(until), (until) => sweeps.run(until)], signal)
    },
    change(next) {
      settings = next
      builder.recheck()
      sweeps.soon()
    },
    add,
    remove,
    setBatchSize: (changes) => set('batch_size', changes),
    setDelay: (ms) => set('delay', ms),
    setLimit: (databases) => set('limit', databases),
    setPruneInterval: (ms) => set('prune_interval', ms),
    counts() {
      const { size: queued, resubmitted } = builder.queue
      const { active: building, built, failures, lags } = builds
      const { requests, part, paused } = pace
      return {
        ...{ ...book.counts(clock.now()), queued, resubmitted, building, built, failures, lags },
        ...{ requests, swept, pace: part, paused, serversKen },
      }
    },
    entries: () => book.entries(),
  }
}
