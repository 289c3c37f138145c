import { onAbort } from '../core/on-abort.ts'
import { fullJitter, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Life } from '../couch/database.ts'
import { SEQ_ZERO, seqText, type Seq } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { splitLines } from './source.ts'
import { FeedPace } from './feed-pace.ts'
import { PageSize } from './page-size.ts'
import { QUIET, watchSilence } from './silence.ts'
import type { Source } from './source.ts'

/** Where a follower is: a sequence, and the life of the source that it belongs to. */
export interface Checkpoint {
  readonly seq: Seq
  /** `instance_start_time`; undefined if it was never known. */
  readonly life?: string | undefined
}

interface Row {
  readonly seq: Seq
}

/** `database-restored`: an older copy was put back, which is behind the checkpoint, or has come beyond it by other changes. */
export type RestartReason = 'database-recreated' | 'database-restored' | 'malformed-checkpoint'

export type FeedEvent<R extends Row> =
  | { readonly kind: 'rows'; readonly rows: readonly R[]; readonly life: string }
  /** No more rows for now. */
  | { readonly kind: 'caught-up' }
  /** So many changes were left when a connection ended. Not every server says it, and not every end is waited for. */
  | { readonly kind: 'left'; readonly changes: number }
  /** Everything will come again from the beginning. */
  | { readonly kind: 'restarted'; readonly why: RestartReason }
  | { readonly kind: 'connected' }
  /** The feed could not be read; it is tried again after the wait. */
  | { readonly kind: 'broken'; readonly error: CouchError; readonly retryInMs: number }

export interface FollowOptions<R extends Row> {
  readonly source: Source<R>
  /** The checkpoint to go on from. Default: the beginning. */
  readonly from?: Checkpoint | undefined
  /** Asked after a break: whether an older copy was put back, and what is kept of the checkpoint with it. */
  readonly isPutBack?: ((signal: AbortSignal) => Promise<boolean>) | undefined
  readonly clock: Clock
  readonly random: Random
  /** How often the server writes a heartbeat. Two and a half of them without one mean a dead connection. */
  readonly heartbeatMs?: number
  /**
   * The most rows of a page. After so many rows the next connection is asked for, when the consumer wants more. Without
   * an end the server would fill the buffers between us, and while rows wait there, send each change of a document.
   * Default 1000.
   */
  readonly rowsAConnection?: number
  /** How long to wait before asking again where a person has to mend something (a password, a right). */
  readonly slowlyMs?: number
}

/** How often a server writes a heartbeat, unless told. */
export const HEARTBEAT_MS = 10_000
/** Where a person has to mend something. */
export const SLOWLY_MS = 30_000

const QUIET_MS = 500
const ROWS_A_CONNECTION = 1000
/** So many heartbeats without a sign mean a dead connection. */
const SILENCE = 2.5
/** Between tries to read a feed. */
export const BACKOFF = { baseMs: 250, capMs: 15_000 }

/**
 * Follows one source for ever, or until the signal aborts (then it returns). At least once, in the server's order:
 * rows may come again after a reconnection, all of them after a rewind, and none is left out. Never ends by itself
 * and never throws: whatever goes wrong is an event, and is tried again.
 *
 * Nothing is read ahead of the consumer but what the connection buffers, and at most `rowsAConnection`: a slow
 * consumer slows the server.
 *
 * What has piled up comes in pages, everything else over a connection that stays open (`feed-pace.ts`).
 */
export async function* follow<R extends Row>(
  options: FollowOptions<R>,
  signal: AbortSignal,
): AsyncGenerator<FeedEvent<R>> {
  const { source, clock, random, slowlyMs = SLOWLY_MS, rowsAConnection = ROWS_A_CONNECTION } = options
  let checkpoint: Checkpoint = options.from ?? { seq: SEQ_ZERO }
  let failures = 0
  const size = new PageSize(rowsAConnection)
  const pace = new FeedPace(source.page !== undefined, rowsAConnection)
  let isDoubtful = true // the first time, and after a break, in which an older copy may have been put back

  while (!signal.aborted) {
    let rows = 0
    const began = clock.ticks()
    try {
      const found = await source.life(isDoubtful && checkpoint.seq !== SEQ_ZERO ? checkpoint.seq : undefined, signal)
      const why = whyRestart(checkpoint, found, isDoubtful && ((await options.isPutBack?.(signal)) ?? false))
      const { life } = found
      checkpoint = { seq: why ? SEQ_ZERO : checkpoint.seq, life }
      if (why) yield { kind: 'restarted', why }
      isDoubtful = false
      const { inPages } = pace
      const asked = size.rows
      let [isEnd, tookMs] = [true, 0]
      const part = inPages ? readPage(options, checkpoint.seq, size, signal) : connect(options, checkpoint.seq, signal)
      for await (const event of part) {
        if (event.kind === 'ended') {
          checkpoint = { ...checkpoint, seq: event.seq }
          tookMs = event.tookMs
          isEnd = rows === 0 || (event.left === undefined ? rows < asked : event.left === 0)
          if (event.left !== undefined) yield { kind: 'left', changes: event.left }
          continue
        }
        if (event.kind === 'rows') {
          failures = 0
          rows += event.rows.length
          yield { ...event, life }
          checkpoint = { ...checkpoint, seq: event.rows.at(-1)!.seq }
        } else {
          if (event.kind === 'caught-up') failures = 0
          yield event
        }
      }
      if (inPages) {
        if (!isEnd) continue
        yield { kind: 'caught-up' }
        const restMs = pace.pageEnded(rows, tookMs, clock.ticks())
        if (restMs > 0) await clock.sleep(restMs, signal)
        continue
      }
      isDoubtful = rows < rowsAConnection // the server has ended it
      pace.connectionEnded(rows, clock.ticks() - began)
      if (rows > 0) continue
      failures += 1 // a feed that ends at once must not become a hot loop
      await clock.sleep(fullJitter(BACKOFF, failures, random), signal)
    } catch (thrown) {
      if (signal.aborted) return
      if (!(thrown instanceof CouchError)) throw thrown
      failures += 1
      isDoubtful = true
      pace.failed()
      if (isCouchError(thrown, 'bad_request') && checkpoint.seq !== SEQ_ZERO) {
        checkpoint = { ...checkpoint, seq: SEQ_ZERO }
        yield { kind: 'restarted', why: 'malformed-checkpoint' }
      }
      const retryInMs = thrown.retry === 'slowly' ? slowlyMs : fullJitter(BACKOFF, failures, random)
      yield { kind: 'broken', error: thrown, retryInMs }
      await clock.sleep(retryInMs, signal).catch(() => undefined)
    }
  }
}

/** Why a checkpoint means nothing in the database that was found; undefined if it is still that of the checkpoint. */
export function whyRestart(
  checkpoint: Checkpoint,
  { life, isBehind }: Life,
  isPutBack: boolean,
): RestartReason | undefined {
  if (checkpoint.life !== undefined && checkpoint.life !== life) return 'database-recreated'
  return isBehind || isPutBack ? 'database-restored' : undefined
}

type ConnectionEvent<R> =
  | { readonly kind: 'connected' | 'caught-up' }
  | { readonly kind: 'rows'; readonly rows: readonly R[] }
  | { readonly kind: 'ended'; readonly seq: Seq; readonly left: number | undefined; readonly tookMs: number }

/** One page. */
async function* readPage<R extends Row>(
  { source, clock, heartbeatMs = HEARTBEAT_MS }: FollowOptions<R>,
  since: Seq,
  size: PageSize,
  signal: AbortSignal,
): AsyncGenerator<ConnectionEvent<R>> {
  const began = clock.ticks()
  const { rows, seq, left, bytes } = await source.page!(since, size.rows, { signal, timeoutMs: heartbeatMs * SILENCE })
  const tookMs = clock.ticks() - began
  size.took(rows.length, bytes)
  yield { kind: 'connected' }
  if (rows.length > 0) yield { kind: 'rows', rows }
  yield { kind: 'ended', seq, left, tookMs }
}

/** One connection's life. Closes its request when the consumer leaves, whatever the reason. */
async function* connect<R extends Row>(
  options: FollowOptions<R>,
  since: Seq,
  outer: AbortSignal,
): AsyncGenerator<ConnectionEvent<R>> {
  const { source, heartbeatMs = HEARTBEAT_MS, rowsAConnection = ROWS_A_CONNECTION } = options
  const request = source.name
  const connection = new AbortController()
  const stopListening = onAbort(outer, () => connection.abort(outer.reason))
  try {
    const query = {
      feed: 'continuous',
      since: seqText(since),
      limit: rowsAConnection,
      heartbeat: heartbeatMs,
    } as const
    const bytes = open(() => source.open(query, connection.signal)) // its silence counts from the request on
    let connected = false
    let behind = true
    let count = 0
    const silence = { quietMs: Math.min(QUIET_MS, heartbeatMs), silenceMs: heartbeatMs * SILENCE }
    for await (const lines of watchSilence(request, splitLines(bytes), silence)) {
      if (lines === QUIET && !connected) continue
      if (!connected) yield { kind: 'connected' }
      connected = true
      const parsed = lines === QUIET ? [] : lines.map((line) => source.parse(request, line))
      const rows = parsed.flatMap((line) => (line.kind === 'row' ? [line.row] : []))
      if (rows.length > 0) {
        behind = true
        yield { kind: 'rows', rows }
      }
      const end = parsed.find((line) => line.kind === 'last-seq')
      if (end) yield { kind: 'ended', seq: end.seq, left: end.left, tookMs: 0 }
      count += rows.length
      if (count >= rowsAConnection) return // CouchDB before 3.4 leaves it open, and sends no more
      if (behind && rows.length === 0 && (lines === QUIET || parsed.length > 0)) {
        behind = false
        yield { kind: 'caught-up' }
      }
    }
  } finally {
    stopListening()
    connection.abort()
  }
}

async function* open<T>(source: () => Promise<AsyncIterable<T>>): AsyncGenerator<T> {
  yield* await source()
}
