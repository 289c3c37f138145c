import { once } from 'node:events'
import http from 'node:http'
import { buffer } from 'node:stream/consumers'

/** A request as the proxy saw it. */
export interface SeenRequest {
  readonly method: string
  /** Still encoded, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: http.IncomingHttpHeaders
  readonly bytes: Buffer
  /** The same as text. */
  readonly body: string
}

/** What the server answered. */
export interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: AsyncIterable<Buffer>
}

/** One request and what becomes of it: the tools a fault is made of. */
export interface Exchange {
  readonly request: SeenRequest
  /** Sends the request on to the server. */
  forward(): Promise<Answer>
  /** Sends head and body to the client, chunk by chunk as they come, and leaves the answer open. */
  send(answer: Answer): Promise<void>
  /** Ends the answer as it should end. */
  end(): void
  /** Breaks the connection to the client. What was sent before still arrives. */
  cut(): void
  /** Resolves after `ms`, or when the client has gone. */
  wait(ms: number): Promise<void>
}

/** Reads the whole request; resolves with the exchange. `passing` is waited for before anything is passed on. */
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
      outgoing.on('error', () => undefined) // also after the answer has begun, whose body ends with it
      const giveUp = () => {
        outgoing.destroy() // a signal is not enough: Node 26 forgets it when the answer begins
        outgoing.socket?.destroy()
      }
      gone.signal.addEventListener('abort', giveUp, { once: true })
      if (gone.signal.aborted) giveUp()
      outgoing.end(bytes)
      const [answer] = (await once(outgoing, 'response')) as [http.IncomingMessage]
      return { status: answer.statusCode ?? 502, headers: answer.headers, body: answer }
    },
    async send({ status, headers, body }) {
      // Node frames the body anew: its length and its chunks are not the server's any more.
      const { 'content-length': _length, 'transfer-encoding': _encoding, connection: _connection, ...rest } = headers
      response.writeHead(status, rest).flushHeaders()
      for await (const chunk of body) {
        await passing()
        // Of what is written between the end of a connection and the news of it, Node never says what became of it.
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
