import type { Dispatch } from '../dispatch.ts'
import type { HandlerQueue } from './handler-queues.ts'
import type { ReadInParts } from './read.ts'

/**
 * Reads documents by their ids and offers them to the dispatch, a few at a time. Calls `onFull` with a queue that has
 * no room; its result says whether to go on with other documents. Returns the ids that were left. With `anyway` it also
 * takes other workers' documents.
 */
export type ReadAndDispatch = (
  ids: readonly string[],
  onFull: (queue: HandlerQueue) => boolean,
  signal: AbortSignal,
  anyway?: boolean,
) => Promise<readonly string[]>

/** Delay before an unreadable document is read again. */
export const UNREADABLE_MS = 30_000

export const createReadAndDispatch =
  (dispatch: Dispatch, readInParts: ReadInParts): ReadAndDispatch =>
  async (ids, onFull, signal, anyway) => {
    const wanted = ids.filter((id) => !dispatch.attempts.has(id))
    let left = wanted
    for await (const { ids: some, docs, failed, isStale } of readInParts(wanted, signal)) {
      for (const id of failed) dispatch.lookAgain(id, UNREADABLE_MS)
      for (const { doc, bytes } of docs) {
        if (isStale(doc._id)) {
          dispatch.lookAgain(doc._id)
          continue
        }
        const full = dispatch.offer(doc, bytes, () => undefined, anyway)
        if (full && !onFull(full)) return left
      }
      left = left.slice(some.length)
    }
    return []
  }
