/** Workers that handle accounts and channels in the test's own control database, and devices of users. */
import { randomBytes } from 'node:crypto'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import pino from 'pino'
import { onTestFinished } from 'vitest'
import type { Config } from '../../sidecar/config.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createCouch, type Couch } from '../../sidecar/couch/client.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { patternsOf } from '../../sidecar/databases/patterns.ts'
import { serveDatabases } from '../../sidecar/databases/databases-feature.ts'
import { ownerRoleOf } from '../../sidecar/accounts/owner.ts'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import type { Message } from '../../sidecar/docstate/mail.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { loadTemplates } from '../../sidecar/mail/templates.ts'
import { createHandlerTables } from '../../sidecar/databases/handler-tables.ts'
import { createDatabaseCounters } from '../../sidecar/databases/databases-feature.ts'
import { createRegistry } from '../../sidecar/workers/registry.ts'
import { everything, type Partitioning } from '../../sidecar/workers/partitioning.ts'
import { channelDatabases } from '../support/channel-databases.ts'
import { createCompiler } from '../../sidecar/deploy/compiler.ts'
import { couchUrl, createTestCouch, deleteDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'

const PASSWORD = 'only for this test'

/** For the only worker. Two workers with this partitioning do everything twice. */
const undivided: Partitioning = {
  ...{ of: () => everything, whole: () => everything, known: Promise.resolve(), onChange: () => undefined },
}

/** A control database without a worker; the test removes it with all its databases at the end. */
export function createControlDb(): string {
  const controlDb = uniqueName('control')
  onTestFinished(async () => {
    const couch = createCouch({ url: couchUrl() })
    for (const name of [...(await channelDatabases(couch, controlDb)), controlDb]) await deleteDb(name)
    await couch.close()
  })
  return controlDb
}

export interface WorkerOptions {
  readonly url?: string
  readonly config?: Partial<Config>
  /** Sent mails; default: a new array. */
  readonly mails?: Message[]
}

/** One worker, until the end of the test or its `stop`. */
export async function startWorker(
  controlDb: string,
  { url = couchUrl(), config = {}, mails = [] }: WorkerOptions = {},
) {
  const couch = createTestCouch({ url })
  const log = pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' })
  const events = createEvents({ log })
  const clock = systemClock
  const settings = {
    ...{ controlDb, databases: [controlDb], confirmExpiryMs: 3_600_000, mailsPerOwner: 5, invitesPerOwner: 20 },
    ...{ channelsPerOwner: 100, shards: 1, channelDdocs: [], couchdbPublicUrl: undefined, ...config },
  } as unknown as Config
  const templates = loadTemplates()
  const handlers = createControl({})
  const tables = createHandlerTables({
    config: settings,
    handlers,
    couch,
    compiler: createCompiler(),
    templates,
    clock,
    publicUrl: 'http://localhost',
    syncUrl: couch.url,
  })
  const send = (message: Message) => Promise.resolve(void mails.push(message))
  const served = serveDatabases({
    ...{
      couch,
      compiler: createCompiler(),
      engines: new Map(),
      controlDb,
      worker: uniqueName('worker'),
      clock,
      random: Math.random,
      log,
      reads: 32,
    },
    ...{
      databases: patternsOf(settings),
      jobOf: tables.of,
      events,
      hasDatabaseEvents: () => false,
      lookAgainMs: [200, 200],
    },
    mailer: { forEntry: ({ done }) => ({ done, send }) },
    workers: createRegistry({ database: couch.db(controlDb), events, clock, random: Math.random, log }),
    ...{ partitioning: undivided, countsOf: createDatabaseCounters(patternsOf(settings)).of },
  })
  const stopping = new AbortController()
  const running = served.run(stopping.signal)
  const stop = async () => {
    stopping.abort(new Error('the test is over'))
    await running
  }
  onTestFinished(stop)
  await eventually(() => createTestCouch().db(controlDb).get('_design/docstate'))
  return { couch, mails, stop, control: couch.db(controlDb) }
}

export interface Person {
  readonly address: string
  readonly role: string
}

export const newPerson = (name: string): Person => {
  const address = `${uniqueName(name)}@example.com`
  return { address, role: ownerRoleOf(normaliseAddress(address)) }
}

/** A confirmed device, as registration leaves it, without its mails. */
export async function addDevice(
  couch: Couch,
  controlDb: string,
  { address, role }: Person,
  _id = `device:${randomBytes(8).toString('hex')}`,
) {
  const user = userNameOf(_id)
  const account = { _id: `org.couchdb.user:${user}`, type: 'user', name: user, roles: [role], device_id: _id }
  await couch.db('_users').put({ ...account, password: PASSWORD })
  onTestFinished(async () => {
    const admin = createCouch({ url: couchUrl() })
    const there = await admin.db('_users').find(account._id)
    if (there) await admin.db('_users').remove(there._id, there._rev)
    await admin.close()
  })
  const device = { _id, type: 'device', state: 'active', owner: address, device_code: '1234', name: 'phone' }
  await couch.db(controlDb).put({ ...device, user, owner_role: role })
  const url = new URL(couchUrl())
  url.username = user
  url.password = encodeURIComponent(PASSWORD)
  return {
    id: _id,
    user,
    couch: createTestCouch({ url: url.href }),
    database: () => databaseOf(couch, controlDb, address),
  }
}

export type TestDevice = Awaited<ReturnType<typeof addDevice>>

/** The name of a user's control database, once the account is ready. */
export async function databaseOf(couch: Couch, controlDb: string, address: string): Promise<string> {
  return eventually(async () => {
    const accounts = await couch.db(controlDb).withPrefix('account:')
    const account = accounts.find((one) => one.address === address)
    if (account?.state !== 'ready' || typeof account.database !== 'string') throw new Error(`${address} has none yet`)
    return account.database
  })
}

export const channel = (person: Person, _id: string, fields: object = {}): Doc => ({
  ...{ _id, type: 'channel', state: 'new', name: _id, owner: person.address, members: [] as string[] },
  ...fields,
})

/** Ann has a device and a ready control database; one worker is running. */
export async function startWithOwner(options: WorkerOptions = {}) {
  const controlDb = createControlDb()
  const worker = await startWorker(controlDb, options)
  const ann = newPerson('ann')
  const phone = await addDevice(worker.couch, controlDb, ann)
  const database = await phone.database()
  return { ...worker, controlDb, ann, phone, database, own: phone.couch.db(database) }
}

/** Ann has a channel with the member Bob, and each has a device; one worker is running. */
export async function startWithMember(options: WorkerOptions = {}) {
  const controlDb = createControlDb()
  const worker = await startWorker(controlDb, options)
  const couch = createTestCouch()
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address] }))
  const ready = await inState(phone.couch, anns, 'photos', 'ready')
  const record = (await couch.db(controlDb).withPrefix('channel:'))[0]!
  await inState(couch, bobs, record._id, 'ready')
  return { ...worker, couch, controlDb, ann, bob, phone, his, anns, bobs, ready, record }
}

/** A document once it is in this state. */
export const inState = (couch: Couch, database: string, id: string, state: string) =>
  eventually(async () => {
    const doc = await couch.db(database).find(id)
    if (doc?.state !== state) throw new Error(`${id}: expected ${state}, got ${JSON.stringify(doc)}`)
    return doc
  })

export const rolesOf = async (couch: Couch, { user }: Pick<TestDevice, 'user'>) =>
  (await couch.db('_users').find(`org.couchdb.user:${user}`))?.roles
