/** The CouchDB resources of a test. Each one belongs to the running test and is removed at its end. */
import { randomBytes } from 'node:crypto'
import { expect, inject, onTestFinished } from 'vitest'
import { createCouch, type Couch, type CouchOptions } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import { eventually } from './eventually.ts'
import { findCouchBinary, startCouchBinary, type PrivateCouch } from './couchdb-binary.ts'
import type { ServerKind } from './find-server.ts'

export { needs, type Feature } from './features.ts'
export type { PrivateCouch } from './couchdb-binary.ts'

/** The URL of the server of this run, with the admin's credentials. */
export const couchUrl = (): string => inject('couchdb').url

export const serverKind = (): ServerKind => inject('couchdb').kind

/** A client, closed at the end of the test. Default: of the server of this run. */
export function createTestCouch(options: Partial<CouchOptions> = {}): Couch {
  const couch = createCouch({ url: couchUrl(), ...options })
  onTestFinished(() => couch.close())
  return couch
}

/** A name that is unique among all tests. */
export const uniqueName = (prefix: string): string => `${prefix}-${randomBytes(6).toString('hex')}`

/** A new, empty database with a unique name, deleted at the end of the test. Default: on the server of this run. */
export async function freshDb(prefix = 'test', url = couchUrl()): Promise<Database> {
  const db = createTestCouch({ url }).db(uniqueName(prefix))
  if (url === couchUrl()) onTestFinished(() => deleteDb(db.name)) // another server ends with its databases
  await db.create()
  return db
}

/** Deletes a database and creates it again with another start time, which CouchDB stores in seconds. */
export async function makeAgain(db: Database): Promise<void> {
  const before = (await db.info()).instance_start_time
  await eventually(async () => {
    await deleteDb(db.name)
    expect((await createAgain(db)).instance_start_time).not.toBe(before)
  })
}

/** Creates a database right after its deletion. Retries, because CouchDB may answer that it still exists. */
export const createAgain = (db: Database) =>
  eventually(async () => {
    await db.create()
    return db.info()
  })

/** Resolves in a later second, so that a database created then has another start time. */
export async function nextSecond(): Promise<void> {
  const second = () => Math.floor(Date.now() / 1000)
  const now = second()
  await eventually(() => expect(second()).toBeGreaterThan(now))
}

/** Compacts a database until only the ids of these revisions remain. This cannot succeed for leaf revisions. */
export async function compactAway(db: Database, revisions: readonly StoredDoc[]): Promise<void> {
  await createTestCouch().request({ method: 'POST', db: db.name, path: '_compact' })
  for (const { _id, _rev } of revisions) {
    await eventually(async () => expect(await db.find(_id, { rev: _rev }), `${_id} ${_rev}`).toBeUndefined())
  }
}

/** Deletes a database; a missing one is fine. Retries if CouchDB fails, as it may under load (500 badarg). */
export async function deleteDb(name: string): Promise<void> {
  const couch = createCouch({ url: couchUrl() })
  try {
    await eventually(() => couch.request({ method: 'DELETE', db: name }).catch(ignoreMissing))
  } finally {
    await couch.close()
  }
}

export function ignoreMissing(thrown: unknown): void {
  if (!isCouchError(thrown, 'not_found')) throw thrown
}

/**
 * A CouchDB that the test may kill and restart. Call `needs('private server')` first. Its start takes seconds, so tests
 * may share it. The code that starts it must stop it.
 */
export async function startPrivateCouch(): Promise<PrivateCouch> {
  const binary = findCouchBinary()
  if (binary === undefined) throw new Error("no CouchDB binary: ask needs('private server') first")
  return startCouchBinary(binary)
}
