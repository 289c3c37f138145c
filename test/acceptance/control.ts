/** A control database, with a member that may read and write but is no admin. */
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
  /** The database to which a sidecar with the settings of `settingsOf` writes database events. */
  readonly eventsName: string
  /** The database, accessed as the server admin. */
  readonly admin: Database
  /** The database, accessed as the user who may read and write. */
  readonly member: Database
  readonly memberName: string
  /** Adds a user to the members. */
  admit(user: string): Promise<void>
  /** Every document including design documents, except those of workers and settings. */
  documents(): Promise<StoredDoc[]>
  /** All document revisions: two equal results mean that nothing was written in between. */
  revisions(): Promise<string[]>
  /** Removes the database and every user that this test created. */
  close(): Promise<void>
}

/** Closed at the end of the running test. */
export async function createControl(): Promise<Control> {
  const control = await openControl()
  onTestFinished(() => control.close())
  return control
}

/** Like `createControl`, but for all tests of a file. The file must close it. */
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

/** The server's URL with these credentials; anonymous without them. */
export function urlOf(user = '', password = PASSWORD): string {
  const url = new URL(couchUrl())
  url.username = user
  url.password = user && password
  return url.href
}

async function removeUsers(server: Couch, names: readonly string[]): Promise<void> {
  const users = server.db('_users')
  // CouchDB rehashes a password at its first login, so the document may change concurrently.
  await eventually(async () => {
    for (const { _id, _rev } of await users.getMany(names.map((name) => `org.couchdb.user:${name}`))) {
      await users.remove(_id, _rev)
    }
  })
}
