import type { CallOptions, Database } from './database.ts'
import type { StoredDoc } from './documents.ts'
import { isCouchError } from './couch-errors.ts'

/** Read together: of documents as the sidecar makes them, a megabyte. */
const TOGETHER = 50

/**
 * As `getMany`, however many they are and however large: a part at a time, and those of a part that cannot be read
 * together one by one.
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
