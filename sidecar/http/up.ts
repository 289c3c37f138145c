import { Hono } from 'hono'
import { methodNotAllowed } from './errors.ts'

export interface Health {
  readonly ok: boolean
  /** What is wrong, in words, without anything secret: everybody may ask. */
  readonly reasons: readonly string[]
}

/** `GET /_up`, for whoever watches the process: 200 while it does its work, 503 with the reasons while it does not. */
export function up({ health }: { health: () => Health }): Hono {
  const app = new Hono()
  app.get('/_up', (c) => {
    const { ok, reasons } = health()
    return ok ? c.json({ status: 'ok' }) : c.json({ status: 'unavailable', reasons }, 503)
  })
  app.all('/_up', methodNotAllowed('GET', 'HEAD'))
  return app
}

/**
 * `GET /`: the beginning of CouchDB's own answer. Some of its clients ask for that before they read a feed
 * (cloudant-follow), and give up where it is missing.
 */
export function welcome(): Hono {
  return new Hono().get('/', (c) => c.json({ couchdb: 'Welcome', vendor: { name: 'couchdb-sidecar' } }))
}
