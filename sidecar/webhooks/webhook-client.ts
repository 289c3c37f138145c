import { Agent, type Dispatcher } from 'undici'
import { isObject } from '../../ddocs/lib/document.ts'
import { Reject, RetryLater } from '../core/errors.ts'
import { cut, failureOf } from '../core/failure.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { Context } from '../docstate/types.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { signatureHeaders } from './sign.ts'

export interface WebhookClientOptions {
  /** Keys of all valid secrets. */
  readonly keys: readonly Buffer[]
  /** Version of this program. */
  readonly version: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Records a span for each call, and sends its id to the receiver. Default: none. */
  readonly tracing?: Tracing | undefined
}

export interface WebhookClient {
  /**
   * Returns the next document, or undefined. Throws `Reject`, `RetryLater`, or an `Error` whose cause has the network's
   * code.
   */
  call(
    url: string,
    doc: StoredDoc,
    ctx: Pick<Context, 'key' | 'attempt' | 'database' | 'signal'>,
  ): Promise<Doc | undefined>
  /** Resolves when no connection is open. */
  close(): Promise<void>
}

const CONNECT_MS = 10_000
/** Maximum size in bytes: CouchDB's `max_document_size`. */
const LONGEST_ANSWER = 8_000_000

/** Calls handlers over HTTP. It follows no redirect, and the handler's `timeout` limits each call. */
export function createWebhookClient({ keys, version, now, tracing }: WebhookClientOptions): WebhookClient {
  const agent = new Agent({
    connect: { timeout: CONNECT_MS },
    maxResponseSize: LONGEST_ANSWER,
    headersTimeout: 0,
    bodyTimeout: 0,
  })

  async function post(url: URL, body: string, headers: Record<string, string>, signal: AbortSignal) {
    const { origin, pathname, search } = url
    const options: Dispatcher.RequestOptions = {
      origin,
      path: pathname + search,
      method: 'POST',
      headers,
      body,
      signal,
    }
    const { statusCode: status, headers: received, body: answer } = await agent.request(options)
    return { status, headers: received, text: await answer.text() }
  }

  async function postTraced(tracing: Tracing, ...[url, body, headers, signal]: Parameters<typeof post>) {
    const attributes = {
      'http.request.method': 'POST',
      'url.full': url.origin + url.pathname,
      'server.address': url.hostname,
    }
    const trace = tracing.begin('POST', { kind: 'CLIENT', attributes })
    try {
      const answer = await trace.run(() => {
        tracing.inject(headers)
        return post(url, body, headers, signal)
      })
      const { status } = answer
      trace.set({ 'http.response.status_code': status })
      trace.end(status >= 400 ? { code: `http_${status}`, reason: `the answer is ${status}` } : undefined)
      return answer
    } catch (thrown) {
      trace.end(failureOf(thrown))
      throw thrown
    }
  }

  return {
    async call(address, doc, { key, attempt, database, signal }) {
      const url = new URL(address)
      const name = `POST ${url.origin}${url.pathname}`
      const body = JSON.stringify(doc)
      const headers = {
        ...signatureHeaders({ id: key, now: now(), body, keys }),
        ...{ 'content-type': 'application/json', accept: 'application/json, application/problem+json' },
        ...{ 'sidecar-database': database, 'sidecar-attempt': String(attempt) },
        'user-agent': `couchdb-sidecar/${version}`,
      }
      const posting = tracing ? postTraced(tracing, url, body, headers, signal) : post(url, body, headers, signal)
      const answer = await posting.catch((thrown: unknown) => {
        const { code, message } = thrown as { code?: unknown; message?: unknown }
        if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
          throw new Reject('bad_answer', `${name}: expected at most ${LONGEST_ANSWER} bytes, got more`)
        }
        throw new Error(`${name}: ${String(message)}`, { cause: thrown })
      })
      return readAnswer(name, answer, now())
    },
    close: () => agent.close(),
  }
}

interface Answer {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** Statuses of 4xx that are worth a retry. */
const PASSING = [408, 425, 429]
const LONGEST_PAUSE_MS = 86_400_000
const MAX_CODE = 100

/**
 * Returns the next document in an answer, or undefined. `name` is the name of the call.
 *
 * @throws Reject if a retry does not help; RetryLater if the answer says when to retry
 */
function readAnswer(name: string, { status, headers, text }: Answer, now: number): Doc | undefined {
  if (status >= 200 && status < 300) return text.trim() === '' ? undefined : documentIn(name, text)
  const { code, reason } = problemIn(name, status, text)
  if (status < 500 && !PASSING.includes(status)) throw new Reject(code, reason)
  const pauseMs = pauseIn(headers['retry-after'], now)
  if (pauseMs !== undefined) throw new RetryLater(code, reason, new Date(now + pauseMs))
  throw Object.assign(new Error(reason), { code })
}

function documentIn(name: string, text: string): Doc {
  const answer = parse(text)
  if (isObject(answer)) return answer as Doc
  throw new Reject('bad_answer', `${name}: expected the next document as JSON, or no content (204), got ${shown(text)}`)
}

/** Error code and reason after RFC 9457: `code`, or the end of `type`; `detail`, or `title`. */
function problemIn(name: string, status: number, text: string): { readonly code: string; readonly reason: string } {
  if (status >= 300 && status < 400) {
    return { code: 'redirected', reason: `${name}: ${status}: expected an answer, got a redirect` }
  }
  const problem = parse(text)
  const { code, type, detail, title } = isObject(problem) ? problem : {}
  const ending = typeof type === 'string' && type !== 'about:blank' ? /([\w.-]+)\/?$/.exec(type)?.[1] : undefined
  const said = [detail, title].find((one): one is string => typeof one === 'string' && one !== '') ?? shown(text)
  return {
    code: cut(typeof code === 'string' && code !== '' ? code : (ending ?? `http_${status}`), MAX_CODE),
    reason: `${name}: ${status}: ${said}`,
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const shown = (text: string) => (text.trim() === '' ? 'nothing' : JSON.stringify(cut(text.trim(), 100)))

/** Milliseconds from a number of seconds, or from an HTTP date; one day at most. */
function pauseIn(header: string | string[] | undefined, now: number): number | undefined {
  const text = String(header ?? '').trim()
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.min(LONGEST_PAUSE_MS, Math.max(0, ms))
}
