import type { StoredDoc } from '../../couch/documents.ts'
import type { Flights } from '../flights.ts'

/** Documents are read before they enter the memory they may take, so those of one request are few: of this size. */
const BYTES = 1024 * 1024
const MOST = 50
/** Before their size is known: a few of the largest that CouchDB takes are no more than it can be. */
const FIRST = 5

export interface Some {
  readonly ids: readonly string[]
  /** With the lengths of their texts; those that are missing or deleted are left out. */
  readonly docs: readonly { readonly doc: StoredDoc; readonly bytes: number }[]
  /** Whether a flight of this document has landed since it was asked for: what we have may be older. */
  readonly isStale: (id: string) => boolean
}

/** Reads documents by their ids, a few at a time. Throws what `read` throws. */
export async function* readInParts(
  read: (ids: readonly string[]) => Promise<readonly StoredDoc[]>,
  ids: readonly string[],
  flights: Flights,
): AsyncGenerator<Some> {
  let together = FIRST
  for (let start = 0; start < ids.length;) {
    const some = ids.slice(start, start + together)
    const landings = flights.watchLandings()
    try {
      const docs = (await read(some)).map((doc) => ({ doc, bytes: JSON.stringify(doc).length }))
      yield { ids: some, docs, isStale: landings.has }
      start += some.length
      const bytes = docs.reduce((sum, { bytes }) => sum + bytes, 1)
      together = Math.max(1, Math.min(MOST, Math.floor((BYTES * docs.length) / bytes)))
    } finally {
      landings.end()
    }
  }
}
