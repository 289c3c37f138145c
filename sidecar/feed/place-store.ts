import { isoTime } from '../core/clock.ts'
import { seqFrom, seqText } from '../couch/documents.ts'
import type { Database } from '../couch/database.ts'
import { createLocalDoc } from '../couch/local.ts'
import type { Place } from './follow.ts'

/** How it was with the documents before a place when nothing was left to do: when the next one is due, if any is. */
export interface Rest {
  /** Milliseconds since the epoch. */
  readonly nextAt: number | undefined
}

/** A place that is kept; `rest` only if there was nothing left to do. */
export interface KeptPlace extends Place {
  readonly rest?: Rest | undefined
}

export interface PlaceStore {
  load(signal: AbortSignal): Promise<KeptPlace | undefined>
  save(place: KeptPlace, signal: AbortSignal): Promise<void>
}

/**
 * Keeps a place in a `_local` document of the database: it goes with the database. One that is too old costs time, never
 * a document.
 *
 * @param owner whose it is: a worker's, that alone writes it, or of all who visit the database one after the other
 */
export function createPlaceStore(database: Database, owner: string): PlaceStore {
  const local = createLocalDoc(database, `_local/couchdb-sidecar:${owner}`)
  return {
    async load(signal) {
      const stored = await local.read(signal)
      if (typeof stored?.seq !== 'string' && typeof stored?.seq !== 'number') return undefined
      const life = typeof stored.life === 'string' ? stored.life : undefined
      return { seq: seqFrom(stored.seq), life, rest: restFrom(stored.next_at) }
    },
    save({ seq, life, rest }, signal) {
      const nextAt = rest && { next_at: rest.nextAt === undefined ? null : isoTime(rest.nextAt) }
      return local.write({ seq: seqText(seq), ...(life !== undefined && { life }), ...nextAt }, signal)
    },
  }
}

function restFrom(stored: unknown): Rest | undefined {
  if (stored === null) return { nextAt: undefined }
  const nextAt = typeof stored === 'string' ? Date.parse(stored) : NaN
  return Number.isNaN(nextAt) ? undefined : { nextAt }
}
