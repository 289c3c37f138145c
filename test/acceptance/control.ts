/** A control database as its users have it: one of them may read and write there, and is nobody's admin. */
import { onTestFinished } from 'vitest'
import { createCouch, type Couch } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { eventually } from '../support/eventually.ts'
import { channelDatabases } from '../support/channel-databases.ts'
import { couchUrl, deleteDb, uniqueName } from '../support/couchdb.ts'
import { answerOf, type Row } from '../support/answers.ts'

export interface Control {
  readonly name: string
  /** Where a sidecar of this control database writes database events, if it runs with `settingsOf`. */
  readonly eventsName: string
  /** As the server's admin. */
  readonly admin: Database
  /** As the user who may read and write there. */
  readonly member: Database
  readonly memberName: string
  /** Lets a user in as well. */
  admit(user: string): Promise<void>
  /** Every document, design documents too; but for those of workers and of settings. */
  documents(): Promise<StoredDoc[]>
  /** All of them with their revisions: what is the same twice has not been written to meanwhile. */
  revisions(): Promise<string[]>
  /** Removes the database, and every user that this test has caused to be. */
  close(): Promise<void>
}

/** Belongs to the running test. */
export async function createControl(): Promise<Control> {
  const control = await openControl()
  onTestFinished(() => control.close())
  return control
}

/** As `createControl`, for all tests of a file, which has to close it. */
export async function openControl(): Promise<Control> {
  const name = uniqueName('control')
  const server = createCouch({ url: couchUrl() })
  const admin = server.db(name)
  await admin.create()
  const memberName = uniqueName('member')
  const names = [memberName]
  const admit = async (...more: string[]) => {
    names.push(...more)
    const body = { admins: { names: [], roles: ['_admin'] }, members: { names, roles: ['_admin'] } }
    await server.request({ method: 'PUT', db: name, path: '_security', body })
  }
  await admit()
  await createUser(server.db('_users'), memberName)
  const member = createCouch({ url: urlOf(memberName) })

  async function documents(): Promise<StoredDoc[]> {
    const query = { include_docs: true }
    const { rows } = await answerOf<{ rows: Row[] }>(server, { db: name, path: '_all_docs', query })
    return rows.flatMap(({ doc }) => (doc && doc.type !== 'worker' && !doc._id.startsWith('config:') ? [doc] : []))
  }

  const eventsName = `${name}-events`
  return {
    name,
    eventsName,
    admin,
    member: member.db(name),
    memberName,
    admit,
    documents,
    revisions: async () => (await documents()).map(({ _id, _rev }) => `${_id} ${_rev}`),
    async close() {
      const devices = (await documents()).filter(({ type }) => type === 'device')
      await removeUsers(server, [memberName, ...devices.map(({ _id }) => userNameOf(_id))])
      for (const made of [...(await channelDatabases(server, name)), name, eventsName]) await deleteDb(made)
      await Promise.all([member.close(), server.close()])
    },
  }
}

const PASSWORD = 'secret'

const createUser = (users: Database, name: string) =>
  users.put({ _id: `org.couchdb.user:${name}`, type: 'user', name, roles: [], password: PASSWORD })

/** The server's address with these credentials; with none, a stranger's. */
export function urlOf(user = '', password = PASSWORD): string {
  const url = new URL(couchUrl())
  url.username = user
  url.password = user && password
  return url.href
}

async function removeUsers(server: Couch, names: readonly string[]): Promise<void> {
  const users = server.db('_users')
  // CouchDB hashes a password anew at its first login, and the document may change under us.
  await eventually(async () => {
    for (const { _id, _rev } of await users.getMany(names.map((name) => `org.couchdb.user:${name}`))) {
      await users.remove(_id, _rev)
    }
  })
}
