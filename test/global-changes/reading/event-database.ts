import type { Database } from '../../../sidecar/couch/database.ts'
import { freshDb } from '../../support/couchdb.ts'

/** A database of event documents, written as global changes are: each write is a new revision without a body. */
export interface EventDatabase extends Database {
  report(...ids: string[]): Promise<void>
}

export const freshEventDatabase = async (): Promise<EventDatabase> => eventDatabase(await freshDb('global-changes'))

export const eventDatabase = (db: Database): EventDatabase =>
  Object.assign(db, { report: (...ids: string[]) => report(db, ids) })

/** Writes all ids in one request. On a server that answers in another order, no id may occur twice in a call. */
async function report(db: Database, ids: readonly string[]): Promise<void> {
  const known = new Map((await db.getMany(ids)).map(({ _id, _rev }) => [_id, _rev]))
  const rows = await db.bulk(ids.map((_id) => JSON.stringify({ _id, _rev: known.get(_id) })))
  const refused = rows.filter(({ error }) => error !== undefined)
  if (refused.length > 0) throw new Error(`not written: ${JSON.stringify(refused)}`)
}

/** `updated:db0`, `updated:db1`, … */
export const updatesOf = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, i) => `updated:db${from + i}`)
