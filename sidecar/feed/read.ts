import { fullJitter, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Semaphore } from '../core/semaphore.ts'
import type { Life } from '../couch/database.ts'
import { SEQ_ZERO, type Seq } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import type { Bell } from './bell.ts'
import type { Change } from './change.ts'
import type { ReadPage } from './source.ts'
import { PageSize } from './page-size.ts'
import { BACKOFF, SLOWLY_MS, whyRestart, type FeedEvent, type Checkpoint } from './follow.ts'

export interface ReadOptions {
  readonly readPage: ReadPage<Change>
  /** See `Source`. Called before the first page, and after each failure. */
  readonly life: (checkpoint: Seq | undefined, signal: AbortSignal) => Promise<Life>
  /** If this number grows, an older copy may have been restored: `life` is called again. */
  readonly breaks?: () => number
  /** See `FollowOptions`. */
  readonly isPutBack?: ((signal: AbortSignal) => Promise<boolean>) | undefined
  readonly from?: Checkpoint | undefined
  /** Rings when more changes may exist. Each read, also the first, waits for the bell. */
  readonly bell: Bell
  /** Shared by all readers. Each page takes one permit, and a reader with more pages waits behind the others. */
  readonly semaphore: Semaphore
  readonly clock: Clock
  readonly random: Random
}

const MOST_ROWS = 500

/**
 * Reads the changes of a database to their end whenever the bell rings. Requests are short: no connection stays open
 * between them. Yields the same events as `follow`, and like `follow` never ends by itself or throws `CouchError`.
 */
export async function* readOnRing(options: ReadOptions, signal: AbortSignal): AsyncGenerator<FeedEvent<Change>> {
  const { readPage, bell, semaphore, clock, random } = options
  let checkpoint: Checkpoint = options.from ?? { seq: SEQ_ZERO }
  let life: string | undefined
  const size = new PageSize(MOST_ROWS)
  let isConnected = false
  let failures = 0
  let hasFailed = false
  let breaks = options.breaks?.()

  while (!signal.aborted) {
    try {
      const rung = await bell.wait(signal)
      if (options.breaks?.() !== breaks) {
        breaks = options.breaks?.()
        life = undefined
        hasFailed = true
      }
      if (life === undefined) {
        const found = await options.life(checkpoint.seq === SEQ_ZERO ? undefined : checkpoint.seq, signal)
        const why = whyRestart(checkpoint, found, hasFailed && ((await options.isPutBack?.(signal)) ?? false))
        checkpoint = { seq: why ? SEQ_ZERO : checkpoint.seq, life: found.life }
        if (why) yield { kind: 'restarted', why }
        life = found.life
        hasFailed = false
      }
      const limit = size.rows
      const page = await semaphore.run(() => readPage(checkpoint.seq, limit, { signal }))
      if (!isConnected) yield { kind: 'connected' }
      isConnected = true
      failures = 0
      const { rows, seq, bytes } = page
      if (rows.length > 0) yield { kind: 'rows', rows, life }
      checkpoint = { ...checkpoint, seq }
      const isEnd = rows.length < limit
      size.took(rows.length, bytes)
      if (page.left !== undefined) yield { kind: 'left', changes: page.left }
      if (isEnd) bell.answer(rung)
      if (!bell.isRinging) yield { kind: 'caught-up' }
    } catch (thrown) {
      if (signal.aborted) return
      if (!(thrown instanceof CouchError)) throw thrown
      failures += 1
      hasFailed = true
      life = undefined
      isConnected = false
      if (isCouchError(thrown, 'bad_request') && checkpoint.seq !== SEQ_ZERO) {
        checkpoint = { ...checkpoint, seq: SEQ_ZERO }
        yield { kind: 'restarted', why: 'malformed-checkpoint' }
      }
      if (isCouchError(thrown, 'garbled') || isCouchError(thrown, 'too_large')) size.tooLarge()
      const retryInMs = thrown.retry === 'slowly' ? SLOWLY_MS : fullJitter(BACKOFF, failures, random)
      yield { kind: 'broken', error: thrown, retryInMs }
      await clock.sleep(retryInMs, signal).catch(() => undefined)
    }
  }
}
