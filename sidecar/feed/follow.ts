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

/** The sequence up to which a source is read, and the life of that source. */
export interface Checkpoint {
  readonly seq: Seq
  /** `instance_start_time`; undefined if it was never known. */
  readonly life?: string | undefined
}

interface Row {
  readonly seq: Seq
}

/** `database-restored`: an older copy was restored. It is behind the checkpoint, or has passed it by other changes. */
export type RestartReason = 'database-recreated' | 'database-restored' | 'malformed-checkpoint'

export type FeedEvent<R extends Row> =
  | { readonly kind: 'rows'; readonly rows: readonly R[]; readonly life: string }
  /** No more rows for now. */
  | { readonly kind: 'caught-up' }
  /** Changes left when a connection ended. Not every server reports them, and the follower does not await every end. */
  | { readonly kind: 'left'; readonly changes: number }
  /** All rows come again from the beginning. */
  | { readonly kind: 'restarted'; readonly why: RestartReason }
  | { readonly kind: 'connected' }
  /** The feed could not be read; the follower retries after `retryInMs`. */
  | { readonly kind: 'broken'; readonly error: CouchError; readonly retryInMs: number }

export interface FollowOptions<R extends Row> {
  readonly source: Source<R>
  /** The checkpoint to resume from. Default: the beginning. */
  readonly from?: Checkpoint | undefined
  /** Called after a break: whether an older copy was restored, together with the stored checkpoint. */
  readonly isPutBack?: ((signal: AbortSignal) => Promise<boolean>) | undefined
  readonly clock: Clock
  readonly random: Random
  /** Heartbeat interval of the server. Silence for two and a half intervals means a dead connection. */
  readonly heartbeatMs?: number
  /**
   * Maximum rows of a page or a connection. The next connection opens when the consumer wants more. Without a limit the
   * server would fill the network buffers, and send each change of a document while rows wait. Default 1000.
   */
  readonly rowsAConnection?: number
  /** Delay before a retry if a person must fix something (a password, a right). */
  readonly slowlyMs?: number
}

/** Default heartbeat interval of a server. */
export const HEARTBEAT_MS = 10_000
/** Default delay before a retry if a person must fix something. */
export const SLOWLY_MS = 30_000

const QUIET_MS = 500
const ROWS_A_CONNECTION = 1000
/** Silence of this many heartbeat intervals means a dead connection. */
const SILENCE = 2.5
/** Delays between tries to read a feed. */
export const BACKOFF = { baseMs: 250, capMs: 15_000 }

/**
 * Follows one source until the signal aborts, then returns. It delivers rows at least once, in the server's order.
 * Rows may come again after a reconnection, all rows after a restart, and no row is left out. It never ends by itself
 * and never throws `CouchError`: each error is an event, and the follower retries.
 *
 * It reads ahead of the consumer only the rows that the connection buffers, at most `rowsAConnection`. So a slow
 * consumer slows the server.
 *
 * A backlog comes in pages, all other changes over an open connection (`feed-pace.ts`).
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
  let isDoubtful = true // at the start and after a break: an older copy may have been restored

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
      const limit = size.rows
      let [isEnd, tookMs] = [true, 0]
      const part = inPages ? readPage(options, checkpoint.seq, size, signal) : connect(options, checkpoint.seq, signal)
      for await (const event of part) {
        if (event.kind === 'ended') {
          checkpoint = { ...checkpoint, seq: event.seq }
          tookMs = event.tookMs
          isEnd = rows === 0 || (event.left === undefined ? rows < limit : event.left === 0)
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
      isDoubtful = rows < rowsAConnection // the server ended the connection
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

/** Why a checkpoint is invalid for the current database; undefined if the checkpoint is valid. */
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

/** Reads one connection. Closes its request when the consumer stops, for any reason. */
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
    const bytes = open(() => source.open(query, connection.signal)) // silence counts from the request on
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
      if (count >= rowsAConnection) return // CouchDB before 3.4 keeps the connection open but sends no more rows
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
