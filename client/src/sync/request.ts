/** One request with its whole answer. It is broken off when nothing has come of it for so long that nothing will. */
export interface Limits {
  /** Milliseconds without a byte. */
  readonly silenceMs: number
  /** Is given what is begun, and returns what forgets that. */
  readonly onBegin: (asking: Asking) => () => void
}

/** A request that is under way. */
export interface Asking {
  abort(): void
  /** Milliseconds without a byte, by the clock of the wall: timers stand still while a phone sleeps. */
  silentMs(): number
}

/** So slowly a body may be sent, bytes in a millisecond: nothing is heard meanwhile. */
const SLOWEST = 8

export async function ask(
  fetch: (url: string, init: RequestInit) => Promise<Response>,
  url: string,
  init: RequestInit,
  { silenceMs, onBegin }: Limits,
): Promise<Response> {
  const asking = new AbortController()
  const abort = () => asking.abort()
  const sendingMs = typeof init.body === 'string' ? init.body.length / SLOWEST : 0
  let heardAt = Date.now() + sendingMs
  const forget = onBegin({ abort, silentMs: () => Date.now() - heardAt })
  init.signal?.addEventListener('abort', abort)
  if (init.signal?.aborted) abort()
  let isSilent = false
  const limit = (ms: number) =>
    setTimeout(() => {
      isSilent = true
      abort()
    }, ms)
  let silence = limit(silenceMs + sendingMs)
  const heard = () => {
    clearTimeout(silence)
    silence = limit(silenceMs)
    heardAt = Date.now()
  }
  try {
    // No cookies: they are of another user, or of none; and no browser asks for a password.
    const answer = await fetch(url, { ...init, credentials: 'omit', signal: asking.signal })
    heard()
    return await wholeOf(answer, heard)
  } catch (thrown) {
    throw isSilent ? new Error(`nothing came for ${silenceMs / 1000} s`, { cause: thrown }) : thrown
  } finally {
    clearTimeout(silence)
    init.signal?.removeEventListener('abort', abort)
    forget()
  }
}

/** The same answer, all of it here: of the same class, since PouchDB in Node asks for what only that of its `fetch` has. */
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

/** A body is a stream of the web or, with the `fetch` that PouchDB has in Node, one of Node's; or nothing tells of it. */
async function* chunksOf(answer: Response): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const body = answer.body as Body | undefined
  if (!body) yield new Uint8Array(await answer.arrayBuffer())
  else if (!('getReader' in body)) yield* body
  else {
    const reader = body.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  }
}

/** Null where there is nothing: some answers may not even have an empty body. */
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
