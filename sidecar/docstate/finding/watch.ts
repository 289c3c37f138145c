import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import { seqText } from '../../couch/documents.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import { withRetries } from '../../couch/with-retries.ts'
import { changesOf, type Change } from '../../feed/change.ts'
import { follow, type FeedEvent, type Checkpoint } from '../../feed/follow.ts'
import { FeedLag } from '../../feed/lag.ts'
import type { CheckpointStore, Rest } from '../../feed/checkpoint-store.ts'
import { Progress } from '../../feed/progress.ts'
import type { Partition } from '../../workers/partitioning.ts'
import type { Telemetry } from '../telemetry.ts'
import type { RowDispatcher } from './row-dispatcher.ts'
import { DDOC_ID } from './pages.ts'

/** Yields the changes after a checkpoint, without end. */
export type ReadFeed = (from: Checkpoint | undefined, signal: AbortSignal) => AsyncIterable<FeedEvent<Change>>

export interface WatchOptions {
  readonly database: Database
  readonly partition: Partition
  readonly rowDispatcher: RowDispatcher
  readonly checkpoints: CheckpointStore
  readonly telemetry: Telemetry
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly heartbeatMs?: number
  /** Default: follows the feed on a separate connection. */
  readonly read?: ReadFeed | undefined
  /** Called before a new database, or a restored older copy, is read. */
  readonly onReplaced: (signal: AbortSignal) => Promise<void>
  /** Called before the feed is read. */
  readonly onStart: (signal: AbortSignal) => Promise<void>
  /** Called when the feed is read to its end: at first, and after each restart. */
  readonly onCaughtUp: () => void
  /** Called when the feed begins again from its start. */
  readonly onRestarted: () => void
  /** Called before the checkpoint passes a change of the design document. Throws `CouchError`. */
  readonly onDdoc: (rev: string, signal: AbortSignal) => Promise<void>
}

const SAVE_EVERY_MS = 5000

/**
 * Reads the feed of one database into the dispatch, and stores the checkpoint up to which all rows are settled. It
 * writes a checkpoint only if it has moved: an idle database gets no writes.
 */
export class Watch {
  readonly #options: WatchOptions
  readonly #caughtUp: Promise<void>
  readonly #lag: FeedLag
  #sayCaughtUp: () => void = () => undefined
  #progress = new Progress()
  #from: Checkpoint | undefined
  #life: string | undefined
  #saved: unknown
  #following = false
  #isBroken = false
  #atEnd = false
  #trouble: CouchError | undefined

  constructor(options: WatchOptions) {
    this.#options = options
    this.#lag = new FeedLag(() => options.clock.ticks())
    this.#caughtUp = new Promise((resolve) => (this.#sayCaughtUp = resolve))
  }

  get following(): boolean {
    return this.#following
  }
  get lag(): FeedLag {
    return this.#lag
  }
  /** Whether all rows of the feed were read and taken. */
  get atEnd(): boolean {
    return this.#atEnd
  }
  /** Number of rows that were read and are not settled. */
  get unsettled(): number {
    return this.#progress.open
  }
  /** Error that prevents reading the feed now. */
  get trouble(): CouchError | undefined {
    return this.#trouble
  }
  /** Resolves when the feed has been read to its end for the first time. */
  get caughtUp(): Promise<void> {
    return this.#caughtUp
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, checkpoints, read = this.#follow } = this.#options
    const from = await withRetries(() => checkpoints.load(signal), { clock, random, signal })
    this.#from = from
    this.#saved = textOf(from?.seq, from?.rest)
    await this.#options.onStart(signal)
    const saving = this.#saveNowAndThen(signal)
    for await (const event of read(from, signal)) await this.#take(event, signal)
    await saving
  }

  /**
   * Stores the checkpoint if it has moved or its `rest` has changed. Not while the feed is broken: a restored older
   * copy would seem to have that checkpoint.
   */
  async saveCheckpoint(signal: AbortSignal, rest?: Rest): Promise<void> {
    const seq = this.#progress.mark ?? (rest && this.#from?.seq)
    const saved = textOf(seq, rest)
    if (seq === undefined || saved === this.#saved || this.#isBroken) return
    try {
      await this.#options.checkpoints.save({ seq, life: this.#life ?? this.#from?.life, rest }, signal)
      this.#saved = saved
    } catch (thrown) {
      if (!(thrown instanceof CouchError)) throw thrown
      this.#options.log.debug({ err: thrown }, 'cannot save the checkpoint; a restart will read some changes again')
    }
  }

  readonly #follow: ReadFeed = (from, signal) => {
    const { database, partition, rowDispatcher, checkpoints, clock, random, heartbeatMs } = this.#options
    const isAlone = () => !partition.hasEquals()
    const options = {
      ...{ source: changesOf(database, isAlone, () => isAlone() && rowDispatcher.wantsDocs), from, clock, random },
      isPutBack: (signal: AbortSignal) => checkpoints.isPutBack(signal),
    }
    return follow({ ...options, ...(heartbeatMs === undefined ? {} : { heartbeatMs }) }, signal)
  }

  async #saveNowAndThen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(SAVE_EVERY_MS, signal).catch(() => undefined)
      if (!signal.aborted) await this.saveCheckpoint(signal).catch(() => undefined)
    }
  }

  /** Retries until the change is processed: documents may wait for this deploy, so it must not be missed. */
  async #takeDdoc({ rev }: Change, signal: AbortSignal): Promise<void> {
    const { clock, random, onDdoc } = this.#options
    const retryOf = ({ retry }: CouchError) => (retry === 'never' ? 'slowly' : retry)
    const onTrouble = (error: CouchError) => (this.#trouble = error)
    await withRetries(() => onDdoc(rev, signal), { clock, random, signal, retryOf, onTrouble })
    this.#trouble = undefined
  }

  async #take(event: FeedEvent<Change>, signal: AbortSignal): Promise<void> {
    const { log, telemetry } = this.#options
    const { database, counts } = telemetry
    this.#atEnd = event.kind === 'caught-up'
    switch (event.kind) {
      case 'rows':
        this.#life = event.life
        counts.changes += event.rows.length
        this.#lag.read(event.rows.length)
        for (const row of event.rows) if (row.id === DDOC_ID) await this.#takeDdoc(row, signal)
        return this.#options.rowDispatcher.take(event.rows, this.#progress, signal)
      case 'caught-up':
        this.#lag.caughtUp()
        this.#options.onCaughtUp()
        return this.#sayCaughtUp()
      case 'left':
        return this.#lag.left(event.changes)
      case 'restarted':
        this.#options.onRestarted()
        this.#progress = new Progress()
        this.#from = undefined
        this.#lag.lost()
        counts.feed.rewound += 1
        telemetry.channel('feed:restarted')?.publish({ database, why: event.why })
        log.warn({ why: event.why }, 'reading the feed again from its start')
        return event.why === 'malformed-checkpoint' ? undefined : this.#options.onReplaced(signal)
      case 'connected':
        if (this.#trouble) log.info('the feed is connected again')
        if (!this.#following) telemetry.channel('feed:connected')?.publish({ database })
        this.#following = true
        this.#isBroken = false
        this.#trouble = undefined
        return
      case 'broken': {
        const { error, retryInMs } = event
        const news = this.#trouble?.code !== error.code
        this.#following = false
        this.#isBroken = true
        this.#trouble = error
        this.#lag.lost()
        counts.feed.broken += 1
        const { code, message: reason } = error
        telemetry.channel('feed:broken')?.publish({ database, code, reason, retry_in_ms: Math.round(retryInMs) })
        return log[news ? 'warn' : 'debug']({ code, reason, retryInMs }, 'the feed is broken; reconnecting')
      }
    }
  }
}

const textOf = (seq: Checkpoint['seq'] | undefined, rest: Rest | undefined) =>
  seq === undefined ? undefined : JSON.stringify([seqText(seq), rest?.nextAt, rest !== undefined])
