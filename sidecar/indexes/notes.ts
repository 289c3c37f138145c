/**
 * Each worker publishes the state of its indexes, for other workers and `couchdb-sidecar status`. It writes a `_local`
 * document of its own in the control database. Up-to-date indexes are only counted: while no index is stale, the worker
 * writes nothing.
 */
import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { createLocalDoc, readLocalDocs } from '../couch/local.ts'
import { byTrouble, isInTrouble, rowOf, type IndexRow } from './rows.ts'
import type { Indexes } from './indexes.ts'
import type { Member } from '../workers/worker-documents.ts'

export interface Note {
  /** Id of the worker that wrote the note. */
  readonly worker: string
  /** Time of the write, ISO 8601 by the worker's clock. */
  readonly at: string
  readonly indexes: number
  /** Indexes that fail or are stale for a while; the worst first, at most a hundred. */
  readonly behind: readonly IndexRow[]
}

export interface NotesOptions {
  readonly indexes: Pick<Indexes, 'entries'>
  /** The control database. */
  readonly database: Database
  readonly worker: string
  readonly clock: Clock
  readonly log: Logger
}

/** Whether a worker builds indexes. */
export const buildsIndexes = ({ options }: Member): boolean => options.indexes === true

const EVERY_MS = 10_000
const MOST = 100
const LAST_WORDS_MS = 1000

const idOf = (worker: string) => `_local/indexes:${worker}`

/** Writes the note of this worker until the signal aborts, then removes it. */
export async function keepNotes({ indexes, database, worker, clock, log }: NotesOptions, signal: AbortSignal) {
  const doc = createLocalDoc(database, idOf(worker))
  let written: string | undefined
  while (!signal.aborted) {
    await clock.sleep(EVERY_MS, signal).catch(() => undefined)
    if (signal.aborted) break
    const now = clock.now()
    const rows = [...indexes.entries()].map((entry) => rowOf(entry, now))
    const behind = rows.filter(isInTrouble).sort(byTrouble)
    const note = { indexes: rows.length, behind: behind.slice(0, MOST) }
    const text = JSON.stringify(note)
    if (text === written) continue
    try {
      await doc.write({ ...note, at: isoTime(now) }, signal)
      written = text
    } catch (thrown) {
      if (signal.aborted) break
      if (!(thrown instanceof CouchError)) throw thrown
      log.debug({ code: thrown.code, reason: thrown.message }, 'cannot save the state of the indexes')
    }
  }
  if (written !== undefined) await remove(database, worker)
}

/** Removes the note of a stopped worker. If this fails, other workers no longer read the note anyway. */
async function remove(database: Database, worker: string): Promise<void> {
  const until = { signal: AbortSignal.timeout(LAST_WORDS_MS) }
  try {
    const doc = await database.find(idOf(worker), {}, until)
    if (doc) await database.remove(doc._id, doc._rev, until)
  } catch (thrown) {
    if (!(thrown instanceof CouchError) && !until.signal.aborted) throw thrown
  }
}

/** Reads the notes of these workers; missing ones are left out. Throws `CouchError`. */
export async function readNotes(database: Database, workers: readonly string[], signal: AbortSignal): Promise<Note[]> {
  const docs = await readLocalDocs(database, workers.map(idOf), signal)
  return workers.flatMap((worker) => {
    const doc = docs.get(idOf(worker))
    if (!doc) return []
    const { at, indexes, behind } = doc
    if (typeof at !== 'string' || typeof indexes !== 'number' || !Array.isArray(behind)) return []
    return [{ worker, at, indexes, behind: behind as IndexRow[] }]
  })
}
