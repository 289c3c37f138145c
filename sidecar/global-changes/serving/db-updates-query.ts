import type { Context } from 'hono'
import { SEQ_ZERO, seqFrom, type Seq } from '../../couch/documents.ts'
import { HttpError } from '../../http/http-errors.ts'

/** The query of a request for `_db_updates`. Times in milliseconds. */
export interface DbUpdatesQuery {
  readonly feed: Feed
  readonly since: Seq
  /** Infinity: all. */
  readonly limit: number
  readonly descending: boolean
  /** Interval of heartbeats; with heartbeats, the feed does not end by itself. */
  readonly heartbeatMs: number | undefined
  /** How long to wait for a row. */
  readonly timeoutMs: number
}

export type Feed = 'normal' | 'longpoll' | 'continuous' | 'eventsource'

const FEEDS: readonly unknown[] = ['normal', 'longpoll', 'continuous', 'eventsource'] satisfies Feed[]
/** CouchDB's longest wait, even if the client requests more. */
const MOST_MS = 60_000

/**
 * Reads the parameters as CouchDB does. It refuses the same values in the same order and words, and ignores unknown
 * parameters.
 *
 * @throws HttpError 400
 */
export function queryFrom(request: Context['req']): DbUpdatesQuery {
  const limit = integer(request.query('limit'))
  const heartbeat = heartbeatFrom(request.query('heartbeat'))
  const timeout = integer(request.query('timeout'))
  const feed = request.query('feed') ?? 'normal'
  if (!isFeed(feed)) throw bad('Supported `feed` types: normal, continuous, longpoll, eventsource')
  const since = sinceFrom(request, feed)
  return {
    feed,
    since: since === undefined ? SEQ_ZERO : seqFrom(since.replace(/^"(.*)"$/, '$1')), // JSON is valid, too
    limit: limit ?? Infinity,
    descending: request.query('descending') === 'true',
    heartbeatMs: heartbeat === undefined ? undefined : Math.min(heartbeat, MOST_MS),
    timeoutMs: Math.min(timeout ?? MOST_MS, MOST_MS),
  }
}

const isFeed = (value: unknown): value is Feed => FEEDS.includes(value)

function heartbeatFrom(value: string | undefined): number | undefined {
  if (value === 'true') return MOST_MS
  const ms = value === 'false' ? undefined : integer(value)
  if (ms === 0) throw bad('The heartbeat value should be a positive integer (in milliseconds).')
  return ms
}

function integer(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (!/^[+-]?\d+$/.test(value) || Number(value) < 0) throw bad('invalid_integer')
  return Number(value)
}

/** The last of the two parameters. A browser's EventSource that reconnects sends its sequence in a header. */
function sinceFrom(request: Context['req'], feed: Feed): string | undefined {
  const names = [...new URL(request.url).searchParams].filter(([name]) => name === 'since' || name === 'last-event-id')
  const header = feed === 'eventsource' ? request.header('Last-Event-ID') : undefined
  return header ?? names.at(-1)?.[1]
}

const bad = (reason: string) => new HttpError(400, 'bad_request', reason)
