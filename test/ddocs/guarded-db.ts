import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { deployDdocs } from '../../sidecar/deploy/deploy.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { openToAll } from './users.ts'
import { answerOf } from '../support/answers.ts'

/** A control database with its guard, a user's database, or any database guarded by `machines`; open to everyone. */
export async function guardedDb(
  machines?: Machines,
  kind: 'control' | 'user' | 'docstate' = machines ? 'docstate' : 'control',
): Promise<Database> {
  const db = await freshDb('guarded')
  const couch = createTestCouch()
  const folder = ddocsFolder(kind)
  await deployDdocs({ couch, deployments: [{ database: db.name, templates: [{ folder, machines }] }] })
  await openToAll(couch, db.name)
  return db
}

/** `fine`, or the reason of the refusal. Throws any other answer. */
export async function tryPut(couch: Couch, db: Database, doc: Doc): Promise<string> {
  try {
    await couch.db(db.name).put(doc)
    return 'fine'
  } catch (thrown) {
    if (isCouchError(thrown, 'forbidden')) return thrown.reason
    throw thrown
  }
}

/** Like `tryPut`, for many documents. Returns the answers by id. `new_edits: false` writes like replication. */
export async function tryBulk(
  couch: Couch,
  db: Database,
  docs: readonly Doc[],
  options: { readonly new_edits?: boolean } = {},
): Promise<Map<string, string>> {
  type Row = { id: string; error?: string; reason?: string }
  const body = { ...options, docs }
  const rows = await answerOf<Row[]>(couch, { method: 'POST', db: db.name, path: '_bulk_docs', body })
  const answers = new Map(docs.map((doc) => [doc._id, 'fine']))
  for (const { id, error, reason } of rows) {
    if (error !== undefined && error !== 'forbidden') throw new Error(`${id}: ${error}: ${reason}`)
    if (error !== undefined) answers.set(id, reason ?? error)
  }
  return answers
}

/** A device as a client writes it. */
export const newDevice = { type: 'device', state: 'new', owner: 'owner@example.com', device_code: '1234' }

/** A confirmation as a client writes it. */
export const newConfirm = {
  type: 'confirm',
  state: 'clicked',
  device_id: 'd',
  device_code: '1234',
  confirm_code: 'abcdefghijklmnopqrstuv',
}

/** The credentials of a device that creates its own password. */
export const hash = {
  password_scheme: 'pbkdf2',
  pbkdf2_prf: 'sha256',
  salt: 'salt',
  derived_key: 'a'.repeat(64),
  iterations: 600_000,
}
