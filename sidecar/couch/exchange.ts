import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { DateReceiver } from './couch-clock.ts'
import { CouchError, codeOf } from './couch-errors.ts'

export interface Exchange {
  /** The request, for messages. */
  readonly name: string
  readonly method: Dispatcher.HttpMethod
  readonly origin: string
  /** Path with its query, sent unchanged. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON, unless the headers say otherwise. */
  readonly body?: string | Uint8Array | Readable | undefined
  readonly signal: AbortSignal
  readonly dispatcher: Dispatcher
  /** Called when the answer begins. */
  readonly onBegun?: (() => void) | undefined
  /** Receives the `Date` of the answer. */
  readonly clock?: DateReceiver | undefined
}

/** A 2xx answer. */
export interface Answer {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** A stream: read it to its end, or abort the signal. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/** No compression: for a nearby server, its processor time costs more than the transfer. */
const HEADERS = { accept: 'application/json', 'content-type': 'application/json', 'accept-encoding': 'identity' }
/** Maximum characters of each text in a refusal. */
const MOST_REASON = 10_000

/**
 * Sends one request to CouchDB, or to a server in its place. Resolves with a 2xx answer. Any other answer, no answer,
 * and a failure while the bytes are read throw `CouchError`.
 */
export async function exchange({
  name,
  body,
  headers,
  dispatcher,
  onBegun,
  clock,
  ...rest
}: Exchange): Promise<Answer> {
  const options = { ...rest, headers: { ...HEADERS, ...headers }, body: body ?? null }
  const sentAt = clock?.ticks() ?? 0
  const answer = await dispatcher.request(options).catch((thrown: unknown) => {
    throw unreachable(name, thrown)
  })
  onBegun?.()
  const { statusCode } = answer
  const { date } = answer.headers
  if (typeof date === 'string') clock?.receive(date, sentAt)
  if (statusCode >= 200 && statusCode < 300) return { headers: answer.headers, bytes: readable(name, answer.body) }
  const text = await answer.body.text().catch(() => '') // half a refusal is still a refusal
  throw refusal(name, statusCode, text)
}

/** The whole answer, an object or an array. Any other value is not CouchDB's, or incomplete. */
export async function exchangeJson(request: Exchange): Promise<object> {
  const chunks: Uint8Array[] = []
  try {
    const { bytes } = await exchange(request)
    for await (const chunk of bytes) chunks.push(chunk)
  } catch (thrown) {
    if (!(thrown instanceof CouchError) || chunks.length === 0) throw thrown
    throw new CouchError(
      'garbled',
      { request: request.name, reason: `the answer broke off: ${thrown.reason}` },
      { cause: thrown },
    )
  }
  const answer = parse(Buffer.concat(chunks).toString())
  if (typeof answer === 'object' && answer !== null) return answer
  throw new CouchError('garbled', { request: request.name, reason: 'the answer is not complete JSON' })
}

async function* readable(name: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (thrown) {
    throw unreachable(name, thrown)
  }
}

/** Converts a network error. Node names a refused connection in the error, or in one of its `errors`. */
function unreachable(request: string, thrown: unknown): CouchError {
  const { message, errors, code } = thrown as { message?: string; errors?: readonly Error[]; code?: string }
  const reason = errors?.[0]?.message || message || code || String(thrown)
  const isTooLong = code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE'
  return new CouchError(isTooLong ? 'garbled' : 'unreachable', { request, reason }, { cause: thrown })
}

/** The error for a refusal. The sidecar trusts only two texts of its body: `error` and `reason`. */
function refusal(request: string, status: number, text: string): CouchError {
  if (status < 400) return new CouchError('garbled', { request, status, reason: 'CouchDB never redirects' })
  const said = Object(parse(text)) as { error?: unknown; reason?: unknown }
  const [error, reason] = [said.error, said.reason].map((one) =>
    typeof one === 'string' && one !== '' ? one.slice(0, MOST_REASON) : undefined,
  )
  const details = { request, status, ...(error && { error }), ...(reason && { reason }) }
  return new CouchError(codeOf(status, error), details)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
