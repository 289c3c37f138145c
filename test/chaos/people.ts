/** People with a device each, who make channels, change their members and close them, all the time. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Close } from '../../sidecar/channels/documents.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import { ownerRoleOf, userNameOf } from '../../sidecar/devices/names.ts'
import { databaseOf } from '../channels/rig.ts'
import { CONTROL_DB } from './trio.ts'

export interface Person {
  readonly address: string
  readonly role: string
  /** Of the one device. */
  readonly user: string
  readonly database: Database
}

/** What a channel is to be in the end. */
export interface Wish {
  readonly owner: Person
  /** Of the document, and of the channel. */
  readonly id: string
  isOpen: boolean
  members: readonly string[]
  /** How each life of it was ended. */
  readonly ends: Close[]
}

/** A device that is active already, with a control database of its user's own. */
export async function addPerson(couch: Couch, name: string): Promise<Person> {
  const [address, id] = [`${name}@example.com`, `device:${name}`]
  const [role, user] = [ownerRoleOf(address), userNameOf(id)]
  const account = { _id: `org.couchdb.user:${user}`, type: 'user', name: user, roles: [role], device_id: id }
  await couch.db('_users').put({ ...account, password: 'only for this test' })
  const device = { _id: id, type: 'device', state: 'active', owner: address, device_code: '1234', name: 'phone' }
  await couch.db(CONTROL_DB).put({ ...device, user, owner_role: role })
  return { address, role, user, database: couch.db(await databaseOf(couch, CONTROL_DB, address)) }
}

export interface Using {
  readonly wish: Wish
  /** Who may be a member, beside its owner. */
  readonly others: readonly string[]
  readonly random: () => number
  /** The end of it: what was begun is still done. */
  readonly over: AbortSignal
}

/** Resolves when all of it is written: what `wish` then says is to come about. */
export async function useChannel({ wish, others, random, over }: Using): Promise<void> {
  const { database, address } = wish.owner
  const someMembers = () => others.filter(() => random() < 0.4)
  await begin(someMembers())
  while (!over.aborted) {
    await sleep(300 + random() * 1500)
    const draw = random()
    if (!wish.isOpen) await begin(someMembers())
    else if (draw < 0.75) await change(someMembers())
    else await end(draw < 0.87 ? 'archive' : 'delete')
  }

  /** Without what the sidecar wrote there. */
  async function begin(members: readonly string[]): Promise<void> {
    const fresh = { _id: wish.id, type: 'channel', state: 'new', name: wish.id, owner: address, members }
    await edit(database, wish.id, (doc) =>
      !doc ? fresh : doc.state === 'closed' ? { ...fresh, _rev: doc._rev } : undefined,
    )
    Object.assign(wish, { isOpen: true, members })
  }

  async function change(members: readonly string[]): Promise<void> {
    await edit(database, wish.id, (doc) => ({ ...doc!, state: 'new', members }))
    wish.members = members
  }

  async function end(close: Close): Promise<void> {
    await edit(database, wish.id, (doc) => {
      if (doc!.state === 'closing' || doc!.state === 'closed') return undefined
      const isKnown = doc!.state === 'ready' || (doc!.state === 'new' && wish.ends.length === 0)
      if (!isKnown) throw new Error('not yet')
      return { ...doc!, state: 'closing', close }
    })
    await untilClosed(database, wish.id)
    wish.isOpen = false
    wish.ends.push(close)
  }
}

/** Until it is written, or nothing is to be: through whatever happens to CouchDB. */
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
