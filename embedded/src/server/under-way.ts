/** Ends requests to a database when it is deleted, as CouchDB does: see `main.ts`. */
import type http from 'node:http'
import { answer } from './answer.ts'

const databasePath = ({ url = '' }: http.IncomingMessage): string => /^\/[^/?]*/.exec(url)?.[0] ?? ''

export const isOfDatabase = ({ url = '' }: http.IncomingMessage): boolean =>
  /^\/[^/?]+\/?(\?|$)/.test(url) && !url.startsWith('/_session')

/** Open answers, by the path of their database. */
const underWay = new Map<string, Set<http.ServerResponse>>()

export function track(request: http.IncomingMessage, response: http.ServerResponse): void {
  const path = databasePath(request)
  const all = (underWay.get(path) ?? new Set()).add(response)
  underWay.set(path, all)
  response.once('close', () => {
    all.delete(response)
    if (all.size === 0) underWay.delete(path)
  })
  if (request.method !== 'DELETE' || !isOfDatabase(request)) return
  response.once('finish', () => {
    if (response.statusCode !== 200) return
    for (const other of all) if (other !== response) endWithDatabase(other)
  })
}

function endWithDatabase(response: http.ServerResponse): void {
  if (!response.headersSent) answer(response, 404, { error: 'not_found', reason: 'Database does not exist.' })
  // Otherwise the next heartbeat causes an error.
  else response.end(() => response.destroy())
}
