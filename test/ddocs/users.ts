import { randomBytes } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { Couch } from '../../sidecar/couch/client.ts'
import { createCouch } from '../../sidecar/couch/client.ts'
import { couchUrl, createTestCouch, uniqueName } from '../support/couchdb.ts'

/** A user with a name and a password who is no admin; the test deletes the user at the end. */
export interface TestUser {
  readonly name: string
  readonly password: string
  readonly couch: Couch
}

export async function createUser(roles: readonly string[] = []): Promise<TestUser> {
  const name = uniqueName('user')
  const password = randomBytes(8).toString('hex')
  const _id = `org.couchdb.user:${name}`
  const users = createTestCouch().db('_users')
  const rev = await users.put({ _id, type: 'user', name, password, roles })
  onTestFinished(async () => {
    const couch = createCouch({ url: couchUrl() })
    const user = await couch.db('_users').find(_id)
    await couch.db('_users').remove(_id, user?._rev ?? rev)
    await couch.close()
  })
  const url = new URL(couchUrl())
  url.username = name
  url.password = password
  return { name, password, couch: createTestCouch({ url: url.href.replace(/\/$/, '') }) }
}

/** An anonymous client. */
export function createAnonymous(): Couch {
  const url = new URL(couchUrl())
  url.username = url.password = ''
  return createTestCouch({ url: url.href.replace(/\/$/, '') })
}

/** Opens a database to everyone, also to anonymous users. */
export const openToAll = (couch: Couch, db: string): Promise<unknown> =>
  setSecurity(couch, db, { names: [], roles: [] })

export async function setSecurity(couch: Couch, db: string, members: { names: string[]; roles: string[] }) {
  const body = { members, admins: { names: [], roles: ['_admin'] } }
  await couch.request({ method: 'PUT', db, path: '_security', body })
}
