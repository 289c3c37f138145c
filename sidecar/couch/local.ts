import type { Doc } from './documents.ts'
import type { Database } from './database.ts'
import { CouchError, isCouchError } from './couch-errors.ts'

/** A `_local` document of which there should be one writer: it causes no change row, has no history, is not replicated. */
export interface LocalDoc {
  /** Undefined if it is not there. Throws `CouchError`. */
  read(signal: AbortSignal): Promise<Doc | undefined>
  /** Throws `CouchError`. */
  write(fields: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void>
  /**
   * Whether it is older than what was read or written here last, or gone: so an older copy of the database was put back.
   * Nothing is known before it was read. Throws `CouchError`.
   */
  isPutBack(signal: AbortSignal): Promise<boolean>
}

/** @param id with its `_local/` */
export function createLocalDoc(database: Database, id: string): LocalDoc {
  let rev: string | undefined
  /** How often it was written at least. */
  let writes = 0

  const writesOf = (rev: string | undefined) => (rev === undefined ? 0 : parseInt(rev.slice('0-'.length)))

  async function read(signal: AbortSignal): Promise<Doc | undefined> {
    const stored = await database.find(id, {}, { signal })
    rev = stored?._rev
    writes = writesOf(rev)
    return stored
  }

  return {
    read,
    async write(fields, signal) {
      if (rev === undefined) await read(signal) // PouchDB asks for the revision, CouchDB does not mind
      const put = () => database.put({ ...fields, _id: id, ...(rev !== undefined && { _rev: rev }) }, { signal })
      try {
        rev = await put()
      } catch (thrown) {
        rev = undefined
        if (!isCouchError(thrown, 'conflict')) throw thrown
        await read(signal) // another writer, by mistake: CouchDB would not have minded
        rev = await put()
      }
      writes = writesOf(rev)
    },
    async isPutBack(signal) {
      const before = writes
      await read(signal)
      return writes < before
    },
  }
}

/** Several `_local` documents, as far as they are there. Throws `CouchError`. */
export async function readLocalDocs(
  database: Database,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Doc>> {
  if (ids.length === 0) return new Map()
  try {
    return new Map((await database.locals(ids, { signal })).map((doc) => [doc._id, doc]))
  } catch (thrown) {
    if (!(thrown instanceof CouchError) || thrown.retry !== 'never') throw thrown
    const docs = await Promise.all(ids.map((id) => database.find(id, {}, { signal }))) // PouchDB cannot list them
    return new Map(docs.flatMap((doc) => (doc ? [[doc._id, doc]] : [])))
  }
}
