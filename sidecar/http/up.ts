import { Hono } from 'hono'
import { methodNotAllowed } from './http-errors.ts'

export interface UpOptions {
  /** What is wrong now, as sentences that hold nothing secret: the endpoint needs no login. */
  readonly problems: () => readonly string[]
}

/**
 * `GET /_up`, for readiness and monitoring: 200 while the process does its work, 503 with the reasons while it does not.
 * `GET /_live`, for liveness: 200 while the process answers at all. What only CouchDB can mend, a restart does not.
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
 * `GET /`: the beginning of CouchDB's own answer. Some of its clients ask for that before they read a feed
 * (cloudant-follow), and give up where it is missing.
 */
export function welcome(): Hono {
  return new Hono().get('/', (c) => c.json({ couchdb: 'Welcome', vendor: { name: 'couchdb-sidecar' } }))
}
