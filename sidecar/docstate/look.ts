import type { Database } from '../couch/database.ts'
import type { Dispatch } from './dispatch.ts'

/** Few enough that documents of the largest size fit into memory together. */
const TOGETHER = 50

/** Reads documents by their ids and offers them to the dispatch, a few at a time. */
export type Look = (ids: readonly string[], signal: AbortSignal) => Promise<void>

export const createLook =
  (database: Database, dispatch: Dispatch): Look =>
  async (ids, signal) => {
    const wanted = ids.filter((id) => !dispatch.flights.has(id))
    for (let start = 0; start < wanted.length; start += TOGETHER) {
      const docs = await database.getMany(wanted.slice(start, start + TOGETHER), { signal })
      for (const doc of docs) await dispatch.offer(doc, JSON.stringify(doc).length, () => undefined, signal)
    }
  }
