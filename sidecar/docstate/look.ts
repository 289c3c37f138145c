import type { Database } from '../couch/database.ts'
import type { Dispatch } from './dispatch.ts'

/** Documents are read before they enter the memory they may take, so those of one request are few: of this size. */
const BYTES = 1024 * 1024
const MOST = 50
/** Before their size is known: a few of the largest that CouchDB takes are no more than it can be. */
const FIRST = 5

/** Reads documents by their ids and offers them to the dispatch, a few at a time. */
export type Look = (ids: readonly string[], signal: AbortSignal) => Promise<void>

export const createLook =
  (database: Database, dispatch: Dispatch): Look =>
  async (ids, signal) => {
    const wanted = ids.filter((id) => !dispatch.flights.has(id))
    let together = FIRST
    for (let start = 0; start < wanted.length;) {
      const docs = await database.getMany(wanted.slice(start, start + together), { signal })
      start += together
      let bytes = 1
      for (const doc of docs) {
        const length = JSON.stringify(doc).length
        bytes += length
        await dispatch.offer(doc, length, () => undefined, signal)
      }
      together = Math.max(1, Math.min(MOST, Math.floor((BYTES * docs.length) / bytes)))
    }
  }
