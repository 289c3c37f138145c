import { seqFrom, seqText } from '../couch/documents.ts'
import type { Database } from '../couch/database.ts'
import type { Place } from './follow.ts'

export interface PlaceStore {
  load(signal: AbortSignal): Promise<Place | undefined>
  save(place: Place, signal: AbortSignal): Promise<void>
}

/**
 * Keeps a worker's place in a `_local` document of the followed database: it causes no change row there, is not
 * replicated, and goes with the database. `_local` documents have no MVCC (the last write wins); each worker writes
 * only its own, and a place that is too old costs time, never a document.
 */
export function createPlaceStore(database: Database, worker: string): PlaceStore {
  const id = `_local/couchdb-sidecar:${worker}`
  let rev: string | undefined
  return {
    async load(signal) {
      const stored = await database.find(id, {}, { signal })
      rev = stored?._rev
      if (typeof stored?.seq !== 'string' && typeof stored?.seq !== 'number') return undefined
      return { seq: seqFrom(stored.seq), life: typeof stored.life === 'string' ? stored.life : undefined }
    },
    async save({ seq, life }, signal) {
      const place = { seq: seqText(seq), ...(life === undefined ? {} : { life }) }
      rev ??= (await database.find(id, {}, { signal }))?._rev // PouchDB asks for the revision, CouchDB does not mind
      try {
        rev = await database.put({ _id: id, ...(rev === undefined ? {} : { _rev: rev }), ...place }, { signal })
      } catch (thrown) {
        rev = undefined
        throw thrown
      }
    },
  }
}
