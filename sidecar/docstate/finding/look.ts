import type { Database } from '../../couch/database.ts'
import type { Dispatch } from '../dispatch.ts'
import type { Lane } from './lanes.ts'

/** Documents are read before they enter the memory they may take, so those of one request are few: of this size. */
const BYTES = 1024 * 1024
const MOST = 50
/** Before their size is known: a few of the largest that CouchDB takes are no more than it can be. */
const FIRST = 5

/**
 * Reads documents by their ids and offers them to the dispatch, a few at a time. `onFull` is called with a lane that
 * has no room for one, and says whether to go on with the others; answers the ids that were left. With `anyway` it takes
 * what is another worker's too.
 */
export type Look = (
  ids: readonly string[],
  onFull: (lane: Lane) => boolean,
  signal: AbortSignal,
  anyway?: boolean,
) => Promise<readonly string[]>

export const createLook =
  (database: Database, dispatch: Dispatch): Look =>
  async (ids, onFull, signal, anyway) => {
    const wanted = ids.filter((id) => !dispatch.flights.has(id))
    let together = FIRST
    for (let start = 0; start < wanted.length;) {
      const docs = await database.getMany(wanted.slice(start, start + together), { signal })
      let bytes = 1
      for (const doc of docs) {
        const length = JSON.stringify(doc).length
        bytes += length
        const full = dispatch.offer(doc, length, () => undefined, anyway)
        if (full && !onFull(full)) return wanted.slice(start)
      }
      start += together
      together = Math.max(1, Math.min(MOST, Math.floor((BYTES * docs.length) / bytes)))
    }
    return []
  }
