/** Limits of one request with its whole answer. The request is aborted after too long a silence. */
export interface Limits {
  /** Maximum time without a byte, milliseconds. */
  readonly silenceMs: number
  /** Called with each request that begins. Returns a function that forgets the request. */
  readonly onBegin: (request: OpenRequest) => () => void
}

/** An open request. */
export interface OpenRequest {
  abort(): void
  /** Milliseconds without a byte, by wall clock: timers stand still while a phone sleeps. */
  silentMs(): number
}

/** Minimum speed of a sent body, bytes per millisecond: no data arrives meanwhile. */
const SLOWEST = 8

export async function fetchWithLimits(
  fetch: (url: string, init: RequestInit) => Promise<Response>,
  url: string,
  init: RequestInit,
  { silenceMs, onBegin }: Limits,
): Promise<Response> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const sendingMs = typeof init.body === 'string' ? init.body.length / SLOWEST : 0
  let receivedAt = Date.now() + sendingMs
  const forget = onBegin({ abort, silentMs: () => Date.now() - receivedAt })
  init.signal?.addEventListener('abort', abort)
  if (init.signal?.aborted) abort()
  let isSilent = false
  const limit = (ms: number) =>
    setTimeout(() => {
      isSilent = true
      abort()
    }, ms)
  let silence = limit(silenceMs + sendingMs)
  const onReceived = () => {
    clearTimeout(silence)
    silence = limit(silenceMs)
    receivedAt = Date.now()
  }
  try {
    // No cookies: they belong to another user, or to none. This also keeps browsers from showing a password prompt.
    const answer = await fetch(url, { ...init, credentials: 'omit', signal: controller.signal })
    onReceived()
    return await wholeOf(answer, onReceived)
  } catch (thrown) {
    throw isSilent ? new Error(`no data for ${silenceMs / 1000} s`, { cause: thrown }) : thrown
  } finally {
    clearTimeout(silence)
    init.signal?.removeEventListener('abort', abort)
    forget()
  }
}

/** The same answer with its whole body. Its class stays: PouchDB in Node uses methods that only its own `fetch` has. */
async function wholeOf(answer: Response, onBytes: () => void): Promise<Response> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  for await (const chunk of chunksOf(answer)) {
    chunks.push(chunk)
    onBytes()
  }
  const { status, statusText } = answer
  const type = answer.headers.get('content-type')
  const AnswerClass = answer.constructor as typeof Response
  return new AnswerClass(joined(chunks), { status, statusText, headers: type === null ? {} : { 'Content-Type': type } })
}

type Body = ReadableStream<Uint8Array<ArrayBuffer>> | AsyncIterable<Uint8Array<ArrayBuffer>> | null

/** Chunks of a body: a web stream or, from PouchDB's `fetch` in Node, a Node stream. Without a stream, one chunk. */
async function* chunksOf(answer: Response): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const body = answer.body as Body | undefined
  if (!body) yield new Uint8Array(await answer.arrayBuffer())
  else if (!('getReader' in body)) yield* body
  else {
    const reader = body.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  }
}

/** Null if the body is empty: some answers may not even have an empty body. */
function joined(chunks: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> | null {
  const size = chunks.reduce((sum, { length }) => sum + length, 0)
  if (size === 0) return null
  const whole = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
