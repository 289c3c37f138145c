import type { Doc } from './documents.ts'
import type { Database } from './database.ts'
import { CouchError, isCouchError } from './couch-errors.ts'

/** A `_local` document, for one writer. It causes no change row, has no history and is not replicated. */
export interface LocalDoc {
  /** Undefined if the document is missing. Throws `CouchError`. */
  read(signal: AbortSignal): Promise<Doc | undefined>
  /** Throws `CouchError`. */
  write(fields: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void>
  /**
   * Whether the document is missing, or older than at the last read or write. If so, an older copy of the database was
   * restored. False before the first read. Throws `CouchError`.
   */
  isPutBack(signal: AbortSignal): Promise<boolean>
}

/** @param id including `_local/` */
export function createLocalDoc(database: Database, id: string): LocalDoc {
  let rev: string | undefined
  /** Minimum number of writes so far. */
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
      if (rev === undefined) await read(signal) // PouchDB requires the revision, CouchDB does not
      const put = () => database.put({ ...fields, _id: id, ...(rev !== undefined && { _rev: rev }) }, { signal })
      try {
        rev = await put()
      } catch (thrown) {
        rev = undefined
        if (!isCouchError(thrown, 'conflict')) throw thrown
        await read(signal) // a second writer, by mistake: CouchDB would report no conflict
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

/** Reads several `_local` documents; missing ones are left out. Throws `CouchError`. */
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
    const docs = await Promise.all(ids.map((id) => database.find(id, {}, { signal }))) // PouchDB cannot list `_local`
    return new Map(docs.flatMap((doc) => (doc ? [[doc._id, doc]] : [])))
  }
}
