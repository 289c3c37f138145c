import { once } from 'node:events'
import http from 'node:http'
import { buffer } from 'node:stream/consumers'

/** A request that the proxy received. */
export interface SeenRequest {
  readonly method: string
  /** Still encoded, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: http.IncomingHttpHeaders
  readonly bytes: Buffer
  /** `bytes` as text. */
  readonly body: string
}

/** The answer of the server. */
export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: AsyncIterable<Buffer>
}

/** One request, and the tools to simulate faults. */
export interface Exchange {
  readonly request: SeenRequest
  /** Forwards the request to the server. */
  forward(): Promise<Answer>
  /** Sends head and body to the client, chunk by chunk as they arrive, and leaves the answer open. */
  send(answer: Answer): Promise<void>
  /** Ends the answer properly. */
  end(): void
  /** Breaks the connection to the client. Data sent before still arrives. */
  cut(): void
  /** Resolves after `ms`, or when the client disconnects. */
  wait(ms: number): Promise<void>
}

/**
 * Reads the whole request, then resolves with the exchange. It awaits `passing` before it forwards the request or a
 * chunk.
 */
export async function openExchange(
  upstream: URL,
  incoming: http.IncomingMessage,
  response: http.ServerResponse,
  passing: () => Promise<void>,
): Promise<Exchange> {
  const gone = new AbortController()
  const left = new Promise((resolve) => response.once('close', resolve)).then(() => gone.abort())
  const url = new URL(incoming.url ?? '/', upstream)
  const bytes = await buffer(incoming)
  const request = {
    bytes,
    get body() {
      return bytes.toString()
    },
    method: incoming.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers: incoming.headers,
  }
  return {
    request,
    async forward() {
      await passing()
      const headers = { ...request.headers, host: upstream.host, connection: 'close' }
      const outgoing = http.request(url, { method: request.method, headers, agent: false })
      outgoing.on('error', () => undefined) // errors may also follow the start of the answer, and end its body, too
      const giveUp = () => {
        outgoing.destroy() // a signal does not suffice: Node 26 forgets it when the answer begins
        outgoing.socket?.destroy()
      }
      gone.signal.addEventListener('abort', giveUp, { once: true })
      if (gone.signal.aborted) giveUp()
      outgoing.end(bytes)
      const [answer] = (await once(outgoing, 'response')) as [http.IncomingMessage]
      return { status: answer.statusCode ?? 502, headers: answer.headers, body: answer }
    },
    async send({ status, headers, body }) {
      // Node frames the body anew, so the server's length and chunks no longer apply.
      const { 'content-length': _length, 'transfer-encoding': _encoding, connection: _connection, ...rest } = headers
      response.writeHead(status, rest).flushHeaders()
      for await (const chunk of body) {
        await passing()
        // Node never calls back for data that is written between the end of a connection and its event `close`.
        await Promise.race([left, new Promise((sent) => response.write(chunk, sent))])
      }
    },
    end: () => void response.end(),
    cut: () => void response.destroy(),
    async wait(ms) {
      if (gone.signal.aborted) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        gone.signal.addEventListener('abort', () => (clearTimeout(timer), resolve()))
      })
    },
  }
}
