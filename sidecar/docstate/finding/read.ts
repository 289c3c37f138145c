import type { Logger } from 'pino'
import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import type { Attempts } from '../attempts.ts'

/** Documents are read before they enter the memory they may take, so one request is for so much, if they are as the last. */
const BYTES = 1024 * 1024
export const MOST = 200
/** Before their size is known: a few of the largest that CouchDB takes are no more than it can be. */
const FIRST = 5

export interface Some {
  readonly ids: readonly string[]
  /** With the lengths of their texts; those that are missing or deleted are left out. */
  readonly docs: readonly { readonly doc: StoredDoc; readonly bytes: number }[]
  /** Those of them that could not be read. */
  readonly failed: readonly string[]
  /** Whether an attempt of this document has ended since it was asked for: what we have may be older. */
  readonly isStale: (id: string) => boolean
}

/** Reads documents by their ids, a few at a time. Throws `CouchError`. */
export type ReadInParts = (ids: readonly string[], signal: AbortSignal) => AsyncGenerator<Some>

/** It remembers how large the documents were, for the next time. */
export function createReadInParts(database: Database, attempts: Attempts, log: Logger): ReadInParts {
  let together = FIRST

  /** Undefined where it was too much at once. */
  async function readSome(ids: readonly string[], signal: AbortSignal, again = false) {
    const failed: string[] = []
    const onFailed = (id: string, reason: string) => {
      failed.push(id)
      log.warn({ doc: id, reason }, 'cannot read a document; trying again every 30 s')
    }
    try {
      const found = await database.getMany(ids, { signal, onFailed })
      return { docs: found.map((doc) => ({ doc, bytes: JSON.stringify(doc).length })), failed }
    } catch (thrown) {
      if (!isCouchError(thrown, 'garbled') && !isCouchError(thrown, 'too_large')) throw thrown
      if (ids.length === 1) {
        if (!again) return readSome(ids, signal, true) // it may have been a connection that broke
        onFailed(ids[0]!, thrown.message)
        return { docs: [], failed }
      }
      together = Math.ceil(ids.length / 4)
      return undefined
    }
  }

  return async function* (ids, signal) {
    for (let start = 0; start < ids.length;) {
      const some = ids.slice(start, start + together)
      const endedSince = attempts.watchEnds(some)
      try {
        const found = await readSome(some, signal)
        if (!found) continue
        const { docs, failed } = found
        yield { ids: some, docs, failed, isStale: endedSince.has }
        start += some.length
        const bytes = docs.reduce((sum, { bytes }) => sum + bytes, 1)
        if (docs.length > 0) together = Math.max(1, Math.min(MOST, Math.floor((BYTES * docs.length) / bytes)))
      } finally {
        endedSince.end()
      }
    }
  }
}
