/** An inbox over real HTTP with its own control database, and requests of clients without credentials. */
import { createHash, randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { expect } from 'vitest'
import { systemClock, type Clock } from '../../sidecar/core/clock.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { inboxRoute } from '../../sidecar/inbox/inbox-route.ts'
import { serveApp } from '../http/serve-app.ts'
import { noArrivals } from '../../sidecar/inbox/inbox-metrics.ts'
import { hashingOf } from '../../sidecar/devices/passwords.ts'
import { createInbox } from '../../sidecar/inbox/inbox.ts'
import { inboxIdOf } from '../../sidecar/inbox/inbox-names.ts'
import { guardedDb } from '../ddocs/guarded-db.ts'
import { couchUrl, createTestCouch, uniqueName } from '../support/couchdb.ts'
import { answerOf, type Row } from '../support/answers.ts'

export interface InboxRigOptions {
  /** The URL of CouchDB. Default: the server of this run. */
  readonly url?: string
  readonly perMinute?: number
  readonly limit?: number
  readonly proxies?: number
  readonly clock?: Clock
}

/** An expected answer. */
export const missing = { status: 404, body: { error: 'not_found', reason: 'missing' } }
export const forbidden = (reason: string) => ({
  status: 403,
  body: { error: 'forbidden', reason: expect.stringContaining(reason) as string },
})
/** An answer without its headers. */
export const only = ({ status, body }: { status: number; body: unknown }) => ({ status, body })

export interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Headers
}

/** Collects the log lines of all levels. */
export async function startInbox(options: InboxRigOptions = {}) {
  const { url: couch = couchUrl(), perMinute = 10_000, limit = 1000, proxies = 0, clock = systemClock } = options
  const db = await guardedDb()
  const database = createTestCouch({ url: couch }).db(db.name)
  const counts = noArrivals()
  const logged: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) })
  const inbox = createInbox({ database, homeOf: () => Promise.resolve(undefined), limit, clock, counts, log })
  const app = createHttp({
    routes: [inboxRoute({ inbox, hashing: hashingOf(false), perMinute, limit, proxies, clock, counts })],
    log,
  })
  const listening = await serveApp(app)
  const url = `${listening.url}/inbox`

  async function send(path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = { 'content-type': 'application/json', ...(init.headers as Record<string, string>) }
    const answer = await fetch(`${url}${path}`, { ...init, headers })
    const text = await answer.text()
    return { status: answer.status, body: (text ? JSON.parse(text) : {}) as Answer['body'], headers: answer.headers }
  }

  return {
    ...{ db, url, counts, logged, send },
    post: (doc: unknown, path = '') => send(path, { method: 'POST', body: JSON.stringify(doc) }),
    put: (id: string, doc: unknown) => send(`/${encodeURIComponent(id)}`, { method: 'PUT', body: JSON.stringify(doc) }),
    status: (id: string, secret?: string) =>
      send(`/${encodeURIComponent(id)}`, {
        headers: secret === undefined ? {} : { authorization: `Bearer ${secret}` },
      }),
    /** The document in the control database. */
    stored: ({ _id, secret_sha256 }: Sent): Promise<StoredDoc> => db.get(inboxIdOf(secret_sha256, _id)),
    /** All documents of the control database except the design document. */
    async documents(): Promise<StoredDoc[]> {
      const query = { include_docs: true }
      const { rows } = await answerOf<{ rows: Row[] }>(createTestCouch(), { db: db.name, path: '_all_docs', query })
      return rows.flatMap(({ doc }) => (doc && !doc._id.startsWith('_') ? [doc] : []))
    },
  }
}

export type InboxRig = Awaited<ReturnType<typeof startInbox>>

export interface Sent extends Record<string, unknown> {
  readonly _id: string
  readonly secret_sha256: string
}

export const newSecret = (): string => randomBytes(16).toString('hex')
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A device document as an app sends it. */
export const newDevice = (secret: string, fields: Record<string, unknown> = {}): Sent => ({
  _id: uniqueName('device'),
  type: 'device',
  state: 'new',
  owner: `${uniqueName('Owner')}@example.com`,
  device_code: '1234',
  secret_sha256: sha256(secret),
  ...fields,
})

/** A confirmation as the device writes it when the user types the code of the link. */
export const newConfirm = (secret: string, deviceId: string, fields: Record<string, unknown> = {}): Sent => ({
  _id: uniqueName('confirm'),
  type: 'confirm',
  state: 'clicked',
  device_id: deviceId,
  device_code: '1234',
  confirm_code: 'abcdefghijklmnopqrstuv',
  secret_sha256: sha256(secret),
  ...fields,
})

/** Changes a device document as the handlers of the sidecar do. */
export async function answerDevice(rig: InboxRig, sent: Sent, fields: Record<string, unknown>): Promise<StoredDoc> {
  const doc = { ...(await rig.stored(sent)), ...fields }
  return { ...doc, _rev: await rig.db.put(doc) }
}
