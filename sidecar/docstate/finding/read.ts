import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Database } from '../../couch/database.ts'
import { compareRevs, type StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { winnerOf } from '../../couch/read-many.ts'
import type { Attempts } from '../attempts.ts'

/** Target size of one request, by the size of the last documents: reads come before the byte budget is charged. */
const BYTES = 1024 * 1024
export const MOST = 200
/** Documents of the first request, before sizes are known: the largest that CouchDB accepts fit into one answer. */
const FIRST = 5

export interface Some {
  readonly ids: readonly string[]
  /** Documents with the lengths of their texts, without missing and deleted ones. */
  readonly docs: readonly { readonly doc: StoredDoc; readonly bytes: number }[]
  /** Ids of documents that could not be read. */
  readonly failed: readonly string[]
  /** Whether an attempt of this document ended after the request began: the document read may be older. */
  readonly isStale: (id: string) => boolean
}

/**
 * Reads documents by their ids, a few at a time. `revOf` returns a revision that is known to exist, if any. On a cluster,
 * two of three copies answer a read, and may lack a document or its last revision; then all copies are asked. Throws
 * `CouchError`.
 */
export type ReadInParts = (
  ids: readonly string[],
  signal: AbortSignal,
  revOf?: (id: string) => string | undefined,
) => AsyncGenerator<Some>

/** How often a document is read that no copy has: a node with the only copy may be away. */
const MOST_MISSES = 10

/** Remembers the size of documents, to choose the size of the next request. */
export function createReadInParts(database: Database, attempts: Attempts, log: Logger): ReadInParts {
  let together = FIRST
  let misses: LRUCache<string, number> | undefined // hardly any database needs it, and it takes 200 KB from the start
  let copies: number | undefined

  /** Reads a document from all copies; undefined if it was deleted. Calls `onMissing` if no copy has it. */
  async function readCopies(id: string, signal: AbortSignal, onMissing: () => void): Promise<StoredDoc | undefined> {
    const leaves = await database.leaves(id, { signal })
    if (leaves.length > 0) {
      misses?.delete(id)
      return winnerOf(leaves.flatMap(({ _revisions, ...leaf }) => (leaf._deleted ? [] : [leaf])))
    }
    misses ??= new LRUCache({ max: 10_000 })
    const count = (misses.get(id) ?? 0) + 1
    misses.set(id, count)
    if (count < MOST_MISSES) onMissing()
    return undefined
  }

  /** Reads these documents; undefined if the answer was too large. */
  async function readSome(
    ids: readonly string[],
    signal: AbortSignal,
    revOf: (id: string) => string | undefined,
    again = false,
  ) {
    const failed: string[] = []
    const onFailed = (id: string, reason: string) => {
      failed.push(id)
      log.warn({ doc: id, reason }, 'cannot read a document; trying again every 30 s')
    }
    try {
      const found = new Map((await database.getMany(ids, { signal, onFailed })).map((doc) => [doc._id, doc]))
      const behind = ids.filter((id) => !failed.includes(id) && isBehind(found.get(id), revOf(id)))
      if (behind.length > 0) copies ??= (await database.info({ signal })).cluster?.n ?? 1
      for (const id of copies === 1 ? [] : behind) {
        const doc = await readCopies(id, signal, () => onFailed(id, 'no copy that answers has it'))
        if (doc) found.set(id, doc)
        else found.delete(id)
      }
      return { docs: [...found.values()].map((doc) => ({ doc, bytes: JSON.stringify(doc).length })), failed }
    } catch (thrown) {
      if (!isCouchError(thrown, 'garbled') && !isCouchError(thrown, 'too_large')) throw thrown
      if (ids.length === 1) {
        if (!again) return readSome(ids, signal, revOf, true) // the connection may have broken
        onFailed(ids[0]!, thrown.message)
        return { docs: [], failed }
      }
      together = Math.ceil(ids.length / 4)
      return undefined
    }
  }

  return async function* (ids, signal, revOf = () => undefined) {
    for (let start = 0; start < ids.length;) {
      const some = ids.slice(start, start + together)
      const endedSince = attempts.watchEnds(some)
      try {
        const found = await readSome(some, signal, revOf)
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

/** Whether the copies that answered lack the document, or this revision of it. */
const isBehind = (doc: StoredDoc | undefined, rev: string | undefined): boolean =>
  doc === undefined || (rev !== undefined && compareRevs(doc._rev, rev) < 0)
