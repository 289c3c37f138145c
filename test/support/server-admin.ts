import { expect, onTestFinished } from 'vitest'
import { couchUrl, uniqueName } from './couchdb.ts'
import { eventually } from './eventually.ts'

export const basic = (name: string, password: string): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`

export interface ServerAdmin {
  readonly name: string
  readonly password: string
  /** The URL of the server of this run, with these credentials. */
  readonly url: string
  readonly authorization: string
  /** Removes the admin before the end of the test. */
  remove(): Promise<void>
}

/** A server admin of this test, who may be locked out. Call `needs('node endpoints')` first. */
export async function createServerAdmin(): Promise<ServerAdmin> {
  const [name, password] = [uniqueName('admin'), 'right']
  const { origin, username, password: word } = new URL(couchUrl())
  const headers = { authorization: basic(decodeURIComponent(username), decodeURIComponent(word)) }
  const path = `${origin}/_node/_local/_config/admins/${name}`
  const remove = async () => {
    expect((await fetch(path, { method: 'DELETE', headers })).status).toBeOneOf([200, 404])
  }
  onTestFinished(remove)
  expect((await fetch(path, { method: 'PUT', headers, body: JSON.stringify(password) })).status).toBe(200)
  await eventually(async () => expect(await (await fetch(path, { headers })).json()).toMatch(/^-/)) // hashed: valid now
  const url = Object.assign(new URL(couchUrl()), { username: name, password }).href
  return { name, password, url, authorization: basic(name, password), remove }
}

/** The status of CouchDB itself for a login. */
export async function loginStatus(authorization: string): Promise<number> {
  return (await fetch(`${new URL(couchUrl()).origin}/_session`, { headers: { authorization } })).status
}
