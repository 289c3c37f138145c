import type { CallOptions, Database } from './database.ts'
import type { StoredDoc } from './documents.ts'
import { isCouchError } from './couch-errors.ts'

/** Documents per request: about a megabyte of documents that the sidecar writes. */
const TOGETHER = 50

/**
 * Like `getMany`, for any number and size of documents. Reads one part at a time. If a part is too large for one
 * answer, its documents are read one by one.
 */
export async function readInParts(
  database: Database,
  ids: readonly string[],
  options: CallOptions,
): Promise<StoredDoc[]> {
  const docs: StoredDoc[] = []
  for (let from = 0; from < ids.length; from += TOGETHER) {
    docs.push(...(await readSome(database, ids.slice(from, from + TOGETHER), options)))
  }
  return docs
}

async function readSome(database: Database, ids: readonly string[], options: CallOptions): Promise<StoredDoc[]> {
  try {
    return await database.getMany(ids, options)
  } catch (thrown) {
    if (!isCouchError(thrown, 'garbled') && !isCouchError(thrown, 'too_large')) throw thrown
  }
  const docs: StoredDoc[] = []
  for (const id of ids) {
    const doc = await database.find(id, {}, options)
    if (doc) docs.push(doc)
  }
  return docs
}
