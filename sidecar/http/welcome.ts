import { Hono } from 'hono'

/**
 * `GET /`: the beginning of CouchDB's own answer. Some of its clients ask for that before they read a feed
 * (cloudant-follow), and give up where it is missing.
 */
export function welcome(): Hono {
  return new Hono().get('/', (c) => c.json({ couchdb: 'Welcome', vendor: { name: 'couchdb-sidecar' } }))
}
