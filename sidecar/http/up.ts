import { Hono } from 'hono'
import { methodNotAllowed } from './http-errors.ts'

export interface UpOptions {
  /** Current problems, as sentences without secrets: the endpoint needs no login. */
  readonly problems: () => readonly string[]
}

/**
 * Serves `GET /_up`, for readiness and monitoring: 200 while the process does its work, otherwise 503 with the reasons.
 * Serves `GET /_live`, for liveness: 200 while the process answers at all. A restart does not mend a fault of CouchDB.
 */
export function up({ problems }: UpOptions): Hono {
  const app = new Hono()
  app.get('/_up', (c) => {
    const reasons = problems()
    return reasons.length === 0 ? c.json({ status: 'ok' }) : c.json({ status: 'unavailable', reasons }, 503)
  })
  app.get('/_live', (c) => c.json({ status: 'ok' }))
  app.all('/_up', methodNotAllowed('GET', 'HEAD'))
  app.all('/_live', methodNotAllowed('GET', 'HEAD'))
  return app
}

/**
 * Serves `GET /`: the first fields of CouchDB's own answer. Some CouchDB clients (cloudant-follow) request it before
 * they read a feed, and fail without it.
 */
export function welcome(): Hono {
  return new Hono().get('/', (c) => c.json({ couchdb: 'Welcome', vendor: { name: 'couchdb-sidecar' } }))
}
