import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { HearsDates } from './couch-clock.ts'
import { CouchError, codeOf } from './couch-errors.ts'

export interface Exchange {
  /** What is asked, for messages. */
  readonly name: string
  readonly method: Dispatcher.HttpMethod
  readonly origin: string
  /** With its query, sent as it is. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON, unless the headers say otherwise. */
  readonly body?: string | Uint8Array | Readable | undefined
  readonly signal: AbortSignal
  readonly dispatcher: Dispatcher
  /** Called when the answer has begun. */
  readonly onBegun?: (() => void) | undefined
  /** Told of the `Date` of the answer. */
  readonly clock?: HearsDates | undefined
}

/** A 2xx answer. */
export interface Answer {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** As they come; read them to their end, or abort the signal. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/** No compression: a server beside us is nearer than the processor time that it costs. */
const HEADERS = { accept: 'application/json', 'content-type': 'application/json', 'accept-encoding': 'identity' }
/** Of what a server says in its refusal. */
const MOST_REASON = 10_000

/**
 * One request to CouchDB, or to what answers in its place. Resolves with a 2xx answer; any other one, and none, is a
 * `CouchError`, also one that comes while the bytes are read.
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
  if (typeof date === 'string') clock?.heard(date, sentAt)
  if (statusCode >= 200 && statusCode < 300) return { headers: answer.headers, bytes: readable(name, answer.body) }
  const text = await answer.body.text().catch(() => '') // half a refusal is one
  throw refusal(name, statusCode, text)
}

/** The whole answer. It is an object or an array: whatever else comes is not CouchDB's, or not all of it. */
export async function exchangeJson(asked: Exchange): Promise<object> {
  const chunks: Uint8Array[] = []
  try {
    const { bytes } = await exchange(asked)
    for await (const chunk of bytes) chunks.push(chunk)
  } catch (thrown) {
    if (!(thrown instanceof CouchError) || chunks.length === 0) throw thrown
    throw new CouchError(
      'garbled',
      { request: asked.name, reason: `the answer broke off: ${thrown.reason}` },
      { cause: thrown },
    )
  }
  const answer = parse(Buffer.concat(chunks).toString())
  if (typeof answer === 'object' && answer !== null) return answer
  throw new CouchError('garbled', { request: asked.name, reason: 'the answer is not whole JSON' })
}

async function* readable(name: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (thrown) {
    throw unreachable(name, thrown)
  }
}

/** What the network says: Node names a refused connection in the error, or in one of several. */
function unreachable(request: string, thrown: unknown): CouchError {
  const { message, errors, code } = thrown as { message?: string; errors?: readonly Error[]; code?: string }
  const reason = errors?.[0]?.message || message || code || String(thrown)
  const isTooLong = code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE'
  return new CouchError(isTooLong ? 'garbled' : 'unreachable', { request, reason }, { cause: thrown })
}

/** Of an answer's body nothing is believed but two texts. */
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
