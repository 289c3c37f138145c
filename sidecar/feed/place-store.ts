import { seqFrom, seqText } from '../couch/documents.ts'
import type { Database } from '../couch/database.ts'
import { createLocalDoc } from '../couch/local.ts'
import type { Place } from './follow.ts'

export interface PlaceStore {
  load(signal: AbortSignal): Promise<Place | undefined>
  save(place: Place, signal: AbortSignal): Promise<void>
}

/**
 * Keeps a worker's place in a `_local` document of the followed database: it goes with the database. Each worker writes
 * only its own, and a place that is too old costs time, never a document.
 */
export function createPlaceStore(database: Database, worker: string): PlaceStore {
  const local = createLocalDoc(database, `_local/couchdb-sidecar:${worker}`)
  return {
    async load(signal) {
      const stored = await local.read(signal)
      if (typeof stored?.seq !== 'string' && typeof stored?.seq !== 'number') return undefined
      return { seq: seqFrom(stored.seq), life: typeof stored.life === 'string' ? stored.life : undefined }
    },
    save: ({ seq, life }, signal) => local.write({ seq: seqText(seq), ...(life !== undefined && { life }) }, signal),
  }
}
