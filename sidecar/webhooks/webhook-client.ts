import { Agent, type Dispatcher } from 'undici'
import { Reject } from '../core/errors.ts'
import { failureOf } from '../core/failure.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { Context } from '../docstate/types.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { readAnswer } from './read-answer.ts'
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
