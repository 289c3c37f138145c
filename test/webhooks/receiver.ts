/** A server that receives webhooks, and accepts only signed ones. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { Webhook } from 'standardwebhooks'

export const SECRET = `whsec_${Buffer.from('a secret of this test, long enough').toString('base64')}`

export interface Received {
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
}

type Reply = (received: Received, response: ServerResponse) => void | Promise<void>

/** Answers each call with `reply`, and keeps the received calls. */
export async function startReceiver(reply: Reply) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void read(request).then((one) => {
      received.push(one)
      return reply(one, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return { host, url: `http://${host}`, received }
}

async function read(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return {
    path: request.url!,
    headers: request.headers as Record<string, string>,
    body: Buffer.concat(chunks).toString(),
  }
}

/** The document of a call, verified by the library of Standard Webhooks; throws if the signature is wrong. */
export const verified = ({ headers, body }: Received, secret = SECRET): Record<string, unknown> =>
  new Webhook(secret).verify(body, headers) as Record<string, unknown>

export const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}) =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
