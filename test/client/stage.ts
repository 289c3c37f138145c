/** A sidecar in this process whose mails the test can read, and devices, each with its own folder of databases. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { onTestFinished } from 'vitest'
import { createClient, type Client, type ClientOptions, type Status } from '../../client/src/index.ts'
import { createAccounts } from '../../sidecar/accounts/accounts.ts'
import { findHome } from '../../sidecar/accounts/accounts.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createCouch } from '../../sidecar/couch/client.ts'
import { createConfirmations } from '../../sidecar/devices/confirmations.ts'
import { hashingOf } from '../../sidecar/devices/passwords.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { confirmPage } from '../../sidecar/devices/confirm-page.ts'
import { inboxRoute } from '../../sidecar/inbox/inbox-route.ts'
import type { Listening } from '../../sidecar/http/listen.ts'
import { serveApp } from '../http/serve-app.ts'
import { noArrivals } from '../../sidecar/inbox/inbox-metrics.ts'
import { createInbox } from '../../sidecar/inbox/inbox.ts'
import { createControlDb, startWorker, type WorkerOptions } from '../channels/rig.ts'
import { couchUrl, serverKind, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy, type FaultyProxy } from '../support/faulty-proxy.ts'
import { answerOf } from '../support/answers.ts'

/** Not by `import`, because its types redeclare `Buffer` for the whole program. */
export const PouchDB = createRequire(import.meta.url)('pouchdb') as {
  defaults(options: object): new (name: string) => TestDb
}

/** The methods that tests use. */
export interface TestDb {
  get(id: string): Promise<Record<string, unknown> & { _id: string; _rev: string }>
  put(doc: object): Promise<{ rev: string }>
  bulkDocs(docs: readonly object[]): Promise<unknown>
  info(): Promise<{ db_name: string; doc_count: number }>
  allDocs(options?: object): Promise<{ rows: { id: string }[] }>
  getAttachment(id: string, name: string): Promise<Buffer>
  close(): Promise<unknown>
}

export interface Stage {
  /** The sidecar's HTTP server: the inbox, and the page behind the links. */
  readonly sidecar: Listening
  /** A proxy between devices and CouchDB. */
  readonly couch: FaultyProxy
  readonly admin: Awaited<ReturnType<typeof startWorker>>['couch']
  readonly control: Awaited<ReturnType<typeof startWorker>>['control']
  /** Stops the worker, so that documents stay unhandled. */
  stopWorker(): Promise<void>
  /** The links in the mails to an address. */
  linksTo(address: string): string[]
}

/** Ends with the running test. */
export async function startStage(options: WorkerOptions = {}): Promise<Stage> {
  const controlDb = createControlDb()
  const worker = await startWorker(controlDb, options)
  onTestFinished(() => removeUsers(controlDb))
  const hashing = hashingOf(serverKind() === 'embedded')
  const log = pino({ level: 'silent' })
  const [clock, counts] = [systemClock, noArrivals()]
  const confirmations = createConfirmations({ database: worker.control, clock, hashing })
  const homeOf = findHome(createAccounts(worker.control), worker.couch.url)
  const inbox = createInbox({ database: worker.control, limit: 100, clock, counts, log, homeOf })
  const taking = { inbox, perMinute: 10_000, limit: 100, proxies: 0, clock, counts, hashing }
  const app = createHttp({ routes: [inboxRoute(taking), confirmPage({ confirmations, log })], log })
  const sidecar = await serveApp(app)
  const couch = await startFaultyProxy()

  return {
    ...{ sidecar, couch, admin: worker.couch, control: worker.control, stopWorker: worker.stop },
    linksTo: (address) =>
      worker.mails
        .filter(({ to, text }) => to === address && text?.includes('/confirm/'))
        .map(({ text }) => sidecar.url + new URL(/http\S+\/confirm\/\S+/.exec(text)![0]).pathname),
  }
}

async function removeUsers(controlDb: string): Promise<void> {
  const couch = createCouch({ url: couchUrl() })
  const { rows } = await answerOf<{ rows: { doc: Record<string, string> }[] }>(couch, {
    ...{ db: controlDb, path: '_all_docs', query: { include_docs: true } },
  })
  const names = rows.flatMap(({ doc }) => (doc.type === 'device' && doc.user ? [doc.user] : []))
  // CouchDB hashes a password again at its first login, which can change the document meanwhile.
  await eventually(async () => {
    const users = await couch.db('_users').getMany(names.map((name) => `org.couchdb.user:${name}`))
    for (const { _id, _rev } of users) await couch.db('_users').remove(_id, _rev)
  })
  await couch.close()
}

export interface Device {
  readonly client: Client<TestDb>
  /** Snapshots, as the app gets them. */
  readonly seen: readonly Status[]
  readonly folder: string
}

export interface DeviceOptions extends Partial<ClientOptions<TestDb>> {
  /** The folder of an existing device. */
  readonly folder?: string
}

/** A new device, or an existing one with its folder. */
export async function startDevice(stage: Stage, { folder, ...options }: DeviceOptions = {}): Promise<Device> {
  const home = folder ?? (await mkdtemp(join(tmpdir(), 'device-')))
  if (!folder) onTestFinished(() => rm(home, { recursive: true, force: true }))
  const client = await createClient({
    ...{ PouchDB: PouchDB.defaults({ prefix: `${home}/` }), inbox: `${stage.sidecar.url}/inbox`, name: 'app' },
    ...{ couchdb: new URL(stage.couch.url).origin, ...options },
  })
  onTestFinished(() => client.stop())
  const seen: Status[] = []
  client.on('change', (status) => seen.push(status))
  return { client, seen, folder: home }
}

export const newAddress = (name: string): string => `${uniqueName(name)}@example.com`

/** Posts a code, as the page behind the link does. */
export async function typeCode(link: string, code: string): Promise<number> {
  const headers = { accept: 'application/json' }
  const answer = await fetch(link, { method: 'POST', headers, body: new URLSearchParams({ device_code: code }) })
  await answer.arrayBuffer()
  return answer.status
}

/** Registers the device and follows the link; resolves when its control database is synced. */
export async function registerDevice(stage: Stage, { client }: Device, owner: string, name = 'phone'): Promise<void> {
  const before = stage.linksTo(owner).length
  await client.register({ owner, name })
  const link = await eventually(() => {
    const links = stage.linksTo(owner)
    if (links.length === before) throw new Error(`no mail: ${JSON.stringify(client.status.registration)}`)
    return links.at(-1)!
  })
  const status = await typeCode(link, client.status.registration.deviceCode!)
  if (status !== 200) throw new Error(`the page answers ${status}`)
  await untilStatus(client, ({ control }) => control.state === 'live')
}

/** Resolves with the first status for which `isTrue` returns true. `patience` is passed to `eventually`. */
export const untilStatus = (
  client: Client,
  isTrue: (status: Status) => boolean,
  patience: { readonly within?: number } = {},
): Promise<Status> =>
  eventually(() => {
    if (!isTrue(client.status)) throw new Error(`not yet: ${JSON.stringify(client.status)}`)
    return client.status
  }, patience)

export const channelOf = ({ status }: Client, id: string) => {
  const channel = status.channels.find((one) => one.id === id || one.name === id)
  if (!channel) throw new Error(`no channel ${id}: ${JSON.stringify(status)}`)
  return channel
}
