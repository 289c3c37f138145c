/**
 * Databases of the history: one for each week, named after its Monday (`history-2026-11-23`). Old entries are deleted
 * with their database, and leave nothing behind. Deleted documents would leave tombstones.
 */
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { makeClosedDatabase } from '../couch/make-closed-database.ts'
import { listDatabases } from '../couch/survey.ts'

const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
/** The first Monday after the epoch: January 1st, 1970 was a Thursday. */
const MONDAY_MS = 4 * DAY_MS

/** Name of the database for this time, milliseconds since the epoch. */
export function databaseOf(name: string, ms: number): string {
  const monday = Math.floor((ms - MONDAY_MS) / WEEK_MS) * WEEK_MS + MONDAY_MS
  return `${name}-${new Date(monday).toISOString().slice(0, 10)}`
}

/** Start of the week of a database, milliseconds since the epoch; undefined if it is not one of the history. */
function beginOf(name: string, database: string): number | undefined {
  const [, date] = /-(\d{4}-\d\d-\d\d)$/.exec(database) ?? []
  const ms = Date.parse(date ?? '')
  return !Number.isNaN(ms) && databaseOf(name, ms) === database ? ms : undefined
}

/** Existing databases of the history, newest first. Throws `CouchError`. */
export async function historyDatabases(couch: Couch, name: string, signal: AbortSignal): Promise<string[]> {
  const found = await listDatabases(couch, (database) => beginOf(name, database) !== undefined, signal)
  return found.sort().reverse()
}

/** Marks a database that the sidecar has created: only marked databases are deleted. */
const MARK = '_local/couchdb-sidecar:history'

/** Creates a database of the history if it is missing. Throws `CouchError`. */
export async function makeHistoryDatabase(couch: Couch, database: string, signal: AbortSignal): Promise<void> {
  const isNew = await makeClosedDatabase(couch, database, { shards: 1, signal })
  if (isNew) await couch.db(database).put({ _id: MARK }, { signal })
}

/** Deletes databases whose week ended `ageMs` ago or earlier. Returns their names. Throws `CouchError`. */
export async function dropOldDatabases(
  couch: Couch,
  { name, ageMs, now }: { readonly name: string; readonly ageMs: number; readonly now: number },
  signal: AbortSignal,
): Promise<string[]> {
  const dropped: string[] = []
  for (const database of await historyDatabases(couch, name, signal)) {
    if (beginOf(name, database)! + WEEK_MS + ageMs > now) continue
    const db = couch.db(database)
    const isOurs = await db.find(MARK, {}, { signal })
    if (!isOurs) continue
    try {
      if (await db.drop({ signal })) dropped.push(database)
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown // another worker was first
    }
  }
  return dropped
}
