import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { Histogram } from '../core/histogram.ts'
import { untilAny } from '../core/until-any.ts'
import { CouchError } from '../couch/couch-errors.ts'
import type { Events } from '../events/channels.ts'
import type { Page } from './book.ts'
import type { Entry } from './entry.ts'
import type { Kinds } from './kinds/kinds.ts'
import type { Index } from './indexes-of.ts'
import type { Kind, Progress } from './kinds/kind.ts'

export interface BuildsOptions {
  /** Kinds that the server can build now. */
  readonly kinds: () => Kinds
  /** Whether the server may also build: if so, each build first reads the progress of the index. */
  readonly isShared: () => boolean
  readonly events: Events
  readonly clock: Clock
  readonly log: Logger
}

/** How a build ended. */
export type Ended =
  | { readonly kind: 'reached' }
  /** The index can no longer be built, or the feature stops. */
  | { readonly kind: 'given-up' }
  | { readonly kind: 'failed'; readonly retryInMs: number }

/** Delay after a failure: at first as in ken, then twice as long each time, up to a maximum. */
const [AFTER_FAILURE_MS, LONGEST_MS] = [5000, 60_000]

/** The running builds, at most one for each index. */
export class Builds {
  active = 0
  built = 0
  failures = 0
  /** Times from the first missing change until the index had it, milliseconds. */
  readonly lags = new Histogram()
  readonly #options: BuildsOptions

  constructor(options: BuildsOptions) {
    this.#options = options
  }

  /** Builds until the index reaches the database's position at the last check, or until it fails. */
  run(entry: Entry, page: Page, signal: AbortSignal): Promise<Ended> {
    return untilAny([signal, entry.ended], (until) => this.#build(entry, page, until))
  }

  async #build(entry: Entry, { seq, touchedAt }: Page, until: AbortSignal): Promise<Ended> {
    const { kinds, isShared, clock } = this.#options
    const { index } = entry
    const kind = kinds()[index.kind]
    if (!kind) return { kind: 'given-up' }
    const looksFirst = entry.job === undefined || kind.hasCopies === true || isShared()
    entry.begin(seq, clock.ticks(), touchedAt)
    this.active += 1
    try {
      const onProgress = (progress: { seq: number; lag: number; isRunning: boolean }) =>
        entry.read(progress, clock.now())
      const wasBehind = await bringUpToDate({ kind, index, target: seq, looksFirst, clock, onProgress }, until)
      this.#reached(entry, wasBehind)
      return { kind: 'reached' }
    } catch (thrown) {
      if (!until.aborted) return this.#failed(entry, thrown)
      entry.giveUp()
      return { kind: 'given-up' }
    } finally {
      this.active -= 1
    }
  }

  #reached(entry: Entry, wasBehind: boolean): void {
    const { clock, events } = this.#options
    const lagMs = entry.reach(clock.now(), clock.ticks())
    this.lags.add(lagMs)
    if (!wasBehind) return
    this.built += 1
    const { database, ddoc, kind, name } = entry.index
    events.channel('index:built')?.publish({ database, ddoc, index: kind === 'view' ? null : name, lag_ms: lagMs })
  }

  #failed(entry: Entry, thrown: unknown): Ended {
    if (!(thrown instanceof CouchError)) throw thrown
    const { code, error, reason } = thrown
    const { clock, events, log } = this.#options
    const { database, ddoc, kind, name } = entry.index
    const count = (entry.failure?.count ?? 0) + 1
    const retryInMs = Math.min(LONGEST_MS, AFTER_FAILURE_MS * 2 ** (count - 1))
    const ticks = clock.ticks()
    entry.fail({ code, reason, at: clock.now(), count }, ticks, ticks + retryInMs)
    entry.isForeign = error === 'unknown_query_language'
    if (entry.isForeign) {
      log.info(
        { database, ddoc, reason },
        'the server lacks the language of a design document: its indexes are not built',
      )
      return { kind: 'given-up' }
    }
    this.failures += 1
    log[count === 1 ? 'warn' : 'debug']({ database, ddoc, code, reason }, 'cannot build an index; trying again')
    const index = kind === 'view' ? null : name
    events.channel('index:failed')?.publish({ database, ddoc, index, code, reason, retry_in_ms: retryInMs })
    return { kind: 'failed', retryInMs }
  }
}

interface JobOptions {
  readonly kind: Kind
  readonly index: Index
  /** Position of the database at the decision. */
  readonly target: number
  /** First reads whether the index is up to date, or a build runs. */
  readonly looksFirst: boolean
  readonly clock: Clock
  readonly onProgress: (progress: Progress) => void
}

/** Pauses between two polls of a build: twice as long each time, but short while no build runs. */
const [FIRST_MS, LONGEST_PAUSE_MS, LONGEST_IDLE_MS] = [20, 5000, 500]
/** Consecutive polls without a running build or progress. After them, a query shows the reason. */
const STILL = 3
const MOST_QUESTIONS = 3

/**
 * Brings an index to the target position, and waits for it. False if the index was already up to date. Throws the
 * `CouchError` that prevents it, or the signal's reason; the server then continues the build.
 */
async function bringUpToDate(options: JobOptions, signal: AbortSignal): Promise<boolean> {
  const { kind, index, target, looksFirst, clock, onProgress } = options
  const isUpToDate = ({ seq, lag }: Progress) => lag === 0 || seq >= target
  const look = async () => {
    const progress = await kind.read(index, target, signal)
    onProgress(progress)
    return progress
  }

  kind.begin?.(index)
  let last = looksFirst ? await look() : undefined
  if (last && isUpToDate(last)) return false
  if (!last?.isRunning) await kind.build(index, target, signal)
  let still = 0
  let questions = 0
  for (let pauseMs = FIRST_MS; ; pauseMs *= 2) {
    await clock.sleep(
      (pauseMs = Math.min(pauseMs, last?.isRunning === false ? LONGEST_IDLE_MS : LONGEST_PAUSE_MS)),
      signal,
    )
    const progress = await look()
    if (isUpToDate(progress)) return true
    still = progress.isRunning || progress.seq !== last?.seq ? 0 : still + 1
    last = progress
    if (still < STILL) continue
    if (questions === MOST_QUESTIONS) throw stuck(index, progress, target)
    questions += 1
    still = 0
    await kind.query(index, signal)
  }
}

const stuck = ({ database, ddoc }: Index, { seq }: Progress, target: number) =>
  new CouchError('server', {
    request: `${database}/${ddoc}`,
    reason: `the index stays at ${seq}, and the database was at ${target}`,
  })
