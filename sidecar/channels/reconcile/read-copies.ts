import type { StoredAccount } from '../../accounts/documents.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/errors.ts'
import { userNameOf } from '../../devices/names.ts'
import type { StoredRecord } from '../documents.ts'
import { subscriptionIdOf } from '../names.ts'
import { copyIdOf } from './copies.ts'

/** Read together: of documents as the sidecar makes them, a few hundred kilobytes. */
const TOGETHER = 50

/** What is there of an account's documents in the user's database, by id. */
export async function readCopies(
  database: Database,
  account: StoredAccount,
  records: readonly StoredRecord[],
  call: CallOptions,
): Promise<ReadonlyMap<string, StoredDoc>> {
  const channels = records.map((record) => copyIdOf(record, account))
  const ids = [...account.devices.map(userNameOf), ...channels, ...channels.map(subscriptionIdOf)]
  const there = new Map<string, StoredDoc>()
  for (let from = 0; from < ids.length; from += TOGETHER) {
    for (const doc of await readSome(database, ids.slice(from, from + TOGETHER), call)) there.set(doc._id, doc)
  }
  return there
}

/** Devices may have made them as large as CouchDB takes them, with as many branches as they like: then one by one. */
async function readSome(database: Database, ids: readonly string[], call: CallOptions): Promise<readonly StoredDoc[]> {
  try {
    return await database.getMany(ids, call)
  } catch (thrown) {
    if (!isCouchError(thrown, 'garbled') && !isCouchError(thrown, 'too_large')) throw thrown
  }
  const docs: StoredDoc[] = []
  for (const id of ids) {
    const doc = await database.find(id, {}, call)
    if (doc) docs.push(doc)
  }
  return docs
}
