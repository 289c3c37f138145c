/** Users with one device each, who continuously create channels, change their members and close them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import type { Close, Data } from '../../sidecar/channels/channel-documents.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import { ownerRoleOf } from '../../sidecar/accounts/owner.ts'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { databaseOf } from '../channels/rig.ts'
import { CONTROL_DB } from './trio.ts'

export interface Person {
  readonly address: string
  readonly role: string
  /** The CouchDB user of the one device. */
  readonly user: string
  readonly database: Database
}

/** The requested final state of a channel. */
export interface ChannelRequest {
  readonly owner: Person
  /** The id of the document and of the channel. */
  readonly id: string
  isOpen: boolean
  members: readonly string[]
  data: Data | undefined
  /** The end of each life of the channel. */
  readonly ends: End[]
}

interface End {
  readonly close: Close
  /** The channel was closed before its database was known: the database may never have existed. */
  readonly isCalledOff: boolean
}

type Requested = Pick<ChannelRequest, 'members' | 'data'>

/** Adds a user with an active device and their own control database. */
export async function addPerson(couch: Couch, name: string): Promise<Person> {
  const [address, id] = [`${name}@example.com`, `device:${name}`]
  const [role, user] = [ownerRoleOf(normaliseAddress(address)), userNameOf(id)]
  const account = { _id: `org.couchdb.user:${user}`, type: 'user', name: user, roles: [role], device_id: id }
  await couch.db('_users').put({ ...account, password: 'only for this test' })
  const device = { _id: id, type: 'device', state: 'active', owner: address, device_code: '1234', name: 'phone' }
  await couch.db(CONTROL_DB).put({ ...device, user, owner_role: role })
  return { address, role, user, database: couch.db(await databaseOf(couch, CONTROL_DB, address)) }
}

export interface Using {
  readonly request: ChannelRequest
  /** The possible members, besides the owner. */
  readonly others: readonly string[]
  readonly random: () => number
  /** Ends the changes; a change in progress is completed. */
  readonly over: AbortSignal
}

/** Resolves when all changes are written: `request` is then the expected final state. */
export async function useChannel({ request, others, random, over }: Using): Promise<void> {
  const { database, address } = request.owner
  const some = () => ({
    members: others.filter(() => random() < 0.4),
    data: random() < 0.7 ? { color: random().toFixed(2) } : undefined,
  })
  await begin(some())
  while (!over.aborted) {
    await sleep(300 + random() * 1500)
    const draw = random()
    if (!request.isOpen) await begin(some())
    else if (draw < 0.75) await change(some())
    else await end(draw < 0.87 ? 'archive' : 'delete')
  }

  /** Writes a new document, without the fields of the sidecar. */
  async function begin(requested: Requested): Promise<void> {
    const fresh = { _id: request.id, type: 'channel', state: 'new', name: request.id, owner: address, ...requested }
    await edit(database, request.id, (doc) =>
      !doc ? fresh : doc.state === 'closed' ? { ...fresh, _rev: doc._rev } : undefined,
    )
    Object.assign(request, { isOpen: true, ...requested })
  }

  async function change(requested: Requested): Promise<void> {
    await edit(database, request.id, (doc) => ({ ...doc!, state: 'new', ...requested }))
    Object.assign(request, requested)
  }

  async function end(close: Close): Promise<void> {
    let isCalledOff = false
    await edit(database, request.id, (doc) => {
      if (doc!.state === 'closing' || doc!.state === 'closed') return undefined
      const isKnown = doc!.state === 'ready' || (doc!.state === 'new' && request.ends.length === 0)
      if (!isKnown) throw new Error('not yet')
      isCalledOff = doc!.database === undefined
      return { ...doc!, state: 'closing', close }
    })
    await untilClosed(database, request.id)
    request.isOpen = false
    request.ends.push({ close, isCalledOff })
  }
}

/** Writes two documents that request one name, as if from two devices, and one without an owner. */
export async function askInVain({ database, address }: Person, round: number): Promise<void> {
  const twin = { type: 'channel', state: 'new', name: `twins ${round}`, owner: address, members: [] }
  const docs = [
    { ...twin, _id: `twin-a-${round}` },
    { ...twin, _id: `twin-b-${round}` },
    { _id: `faulty-${round}`, type: 'channel', state: 'new', name: `without an owner ${round}` },
  ]
  await Promise.all(docs.map((doc) => edit(database, doc._id, (there) => (there ? undefined : doc))))
}

/** Their results: of the one that got the name, the one that did not, and the one without an owner. */
export async function answersTo({ database }: Person, round: number): Promise<unknown[]> {
  const ids = ['twin-a', 'twin-b', 'faulty'].map((id) => `${id}-${round}`)
  const [a, b, faulty] = await Promise.all(ids.map((id) => database.find(id)))
  const [first, second] = a?.state === 'ready' ? [a, b] : [b, a]
  return [first?.state, ...[second, faulty].map((doc) => (doc?.error as { code?: string } | undefined)?.code)]
}

/** Repeats the write until it succeeds or `next` has nothing to write, while CouchDB fails. */
async function edit(database: Database, id: string, next: (doc: StoredDoc | undefined) => Doc | undefined) {
  for (;;) {
    try {
      const made = next(await database.find(id))
      if (made) await database.put(made)
      return
    } catch {
      await sleep(100)
    }
  }
}

async function untilClosed(database: Database, id: string): Promise<void> {
  for (;;) {
    const doc = await database.find(id).catch(() => undefined)
    if (doc?.state === 'closed') return
    await sleep(200)
  }
}
