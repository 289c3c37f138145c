/** Faults of requests to CouchDB and of their answers. A fault uses the functions of an exchange; add your own. */
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Answer, Exchange } from '../../sidecar/testing/proxy-exchange.ts'

export type Fault = (exchange: Exchange) => void | Promise<void>

type Body = AsyncIterable<Buffer>

/** No fault at all. */
export const pass: Fault = (exchange) => passChanged(exchange, (body) => body)

/** CouchDB's error body for each status. */
const bodies: Readonly<Record<number, { error: string; reason: string }>> = {
  401: { error: 'unauthorized', reason: 'Name or password is incorrect.' },
  403: { error: 'forbidden', reason: 'You are not allowed to access this db.' },
  404: { error: 'not_found', reason: 'missing' },
  429: { error: 'too_many_requests', reason: 'Too many requests' },
  500: { error: 'internal_server_error', reason: 'No DB shards could be opened.' },
  503: { error: 'service_unavailable', reason: 'The server is in maintenance mode.' },
}

/** Answers with this status, by default with CouchDB's error body; the server never sees the request. */
export const refuse = (
  status: number,
  body = bodies[status] ?? { error: 'unknown_error', reason: `status ${status}` },
): Fault => answerWith(status, `${JSON.stringify(body)}\n`)

/** Answers with this text; the server never sees the request. */
export const answerWith =
  (status: number, text: string, type = 'application/json'): Fault =>
  async (exchange) => {
    await exchange.send({ status, headers: { 'content-type': type }, body: Readable.from([Buffer.from(text)]) })
    exchange.end()
  }

/** Breaks the connection; the server never sees the request. */
export const cut: Fault = (exchange) => exchange.cut()

/** The server handles the request, and the client waits for the answer. The connection stays open. */
export const silenceAfterUpstream: Fault = async (exchange) => {
  for await (const _chunk of (await exchange.forward()).body);
}

/** The server handles the request, and the client gets no answer: an ambiguous write. */
export const cutAfterUpstream: Fault = async (exchange) => {
  await silenceAfterUpstream(exchange)
  exchange.cut()
}

/** Breaks the connection after this many bytes of the answer's body. */
export const cutAfterBytes =
  (bytes: number): Fault =>
  async (exchange) => {
    const answer = await exchange.forward()
    await exchange.send({ ...answer, body: firstBytes(answer.body, bytes) })
    exchange.cut()
  }

/** Breaks the connection within a line, after `lines` complete ones. Blank lines do not count. */
export const cutInLine =
  (lines: number): Fault =>
  async (exchange) => {
    const answer = await exchange.forward()
    await exchange.send({ ...answer, body: linesAndHalf(answer.body, lines) })
    exchange.cut()
  }

/** Accepts the request and never answers. The connection stays open. */
export const silence: Fault = () => undefined

/** Stops sending after this many bytes of the answer's body. The connection stays open. */
export const silenceAfterBytes =
  (bytes: number): Fault =>
  async (exchange) => {
    const answer = await exchange.forward()
    await exchange.send({ ...answer, body: firstBytes(answer.body, bytes) })
  }

/** Waits before it passes the request on or applies another fault. */
export const delay =
  (ms: number, then: Fault = pass): Fault =>
  async (exchange) => {
    await exchange.wait(ms)
    await then(exchange)
  }

/** The server handles the request at once, and the client gets the answer after `ms`. */
export const late =
  (ms: number): Fault =>
  async (exchange) => {
    const answer = await exchange.forward()
    await exchange.wait(ms)
    await exchange.send(answer)
    exchange.end()
  }

/** Sends the body in pieces of this many bytes, which split rows and multi-byte characters anywhere. */
export const inPieces =
  (bytes: number): Fault =>
  (exchange) =>
    passChanged(exchange, (body) => pieces(body, bytes))

/** Inserts `text` into the body after this many lines. Blank lines do not count. */
export const inject =
  (text: string, afterLines = 0): Fault =>
  (exchange) =>
    passChanged(exchange, (body) => injected(body, text, afterLines))

/** Changes the text of the body. */
export const rewritten =
  (change: (text: string) => string): Fault =>
  (exchange) =>
    passChanged(exchange, async function* (body) {
      yield Buffer.from(change((await buffer(body)).toString()))
    })

/** Changes answers to requests of `isInfo`: they report three copies of each document. */
export const ofThreeCopies: Fault = rewritten((text) => {
  const three = (info: object) => ({ ...info, cluster: { n: 3 } })
  const answer = JSON.parse(text) as object | { readonly info?: object }[]
  const rows = (given: { readonly info?: object }[]) =>
    given.map((row) => (row.info ? { ...row, info: three(row.info) } : row))
  return JSON.stringify(Array.isArray(answer) ? rows(answer) : three(answer))
})

/** Requests for the properties of databases. */
export const isInfo = ({ method, path }: { readonly method: string; readonly path: string }): boolean =>
  path === '/_dbs_info' || (method === 'GET' && /^\/[^/_][^/]*$/.test(path))

async function passChanged(exchange: Exchange, change: (body: Body) => Body): Promise<void> {
  const answer: Answer = await exchange.forward()
  await exchange.send({ ...answer, body: change(answer.body) })
  exchange.end()
}

async function* firstBytes(body: Body, bytes: number): Body {
  let left = bytes
  for await (const chunk of body) {
    yield chunk.subarray(0, left)
    left -= chunk.length
    if (left <= 0) return
  }
}

async function* pieces(body: Body, bytes: number): Body {
  for await (const chunk of body) {
    for (let at = 0; at < chunk.length; at += bytes) {
      yield chunk.subarray(at, at + bytes)
      await new Promise(setImmediate)
    }
  }
}

async function* linesAndHalf(body: Body, lines: number): Body {
  let whole = 0
  for await (const line of linesOf(body)) {
    if (isBlank(line) || whole++ < lines) yield line
    else {
      yield line.subarray(0, line.length / 2)
      return
    }
  }
}

async function* injected(body: Body, text: string, afterLines: number): Body {
  let left = afterLines
  if (left === 0) yield Buffer.from(text)
  for await (const line of linesOf(body)) {
    yield line
    if (!isBlank(line) && --left === 0) yield Buffer.from(text)
  }
}

async function* linesOf(body: Body): Body {
  let rest = Buffer.alloc(0)
  for await (const chunk of body) {
    rest = Buffer.concat([rest, chunk])
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      yield rest.subarray(0, end + 1)
      rest = rest.subarray(end + 1)
    }
  }
  if (rest.length > 0) yield rest
}

const isBlank = (line: Buffer): boolean => line.toString().trim() === ''
