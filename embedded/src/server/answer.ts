import type http from 'node:http'

export function answer(response: http.ServerResponse, status: number, body: { error: string; reason: string }): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
}
