/** Lists documents by pages: those that match a filter, or an id prefix, in one or all databases. */
import type { Couch } from '../couch/client.ts'
import { isOfOneDatabase, unreadInWords } from '../couch/couch-errors.ts'
import type { CountedDatabase } from '../databases/stuck.ts'
import type { Place } from '../docstate/finding/pages.ts'
import { findDocuments, type Filter } from '../docstate/operator/find.ts'
import { standingOf, type Standing } from '../docstate/operator/standing.ts'
import { HttpError } from '../http/http-errors.ts'

export interface Row extends Standing {
  readonly database: string
}

export interface Listing {
  readonly rows: readonly Row[]
  /** Position of the next page; undefined at the end. */
  readonly next: string | undefined
  /** Whether the search ended before the last document. */
  readonly isCut?: boolean
  /** Databases that cannot be read, and why. */
  readonly unread: readonly string[]
}

interface ListOptions {
  readonly couch: Couch
  /** In the order of their names. */
  readonly databases: readonly CountedDatabase[]
  readonly signal: AbortSignal
}

/** Maximum rows of a page. */
const SHOWN = 100
/** Maximum pages read for one page of the list: matches may be rare, or spread over many databases. */
const MOST_PAGES = 50

/** Lists documents that match a filter, after the end of an earlier page. Throws `CouchError`. */
export async function listStanding(
  { couch, databases, signal }: ListOptions,
  { filter, now, after }: { readonly filter: Filter; readonly now: number; readonly after: string | undefined },
): Promise<Listing> {
  const from = after === undefined ? undefined : placeFrom(after)
  const rows: Row[] = []
  let place: (Place & { readonly database: string }) | undefined
  let pages = 0
  const unread: string[] = []
  for (const { name, counted } of databases) {
    if (!counted || (from && name < from.database)) continue
    const find = { database: couch.db(name), counted, filter, now, page: SHOWN + 1, signal }
    const begin = from?.database === name ? from : undefined
    try {
      for await (const found of findDocuments({ ...find, after: begin })) {
        for (const { standing, place: at } of found) {
          if (rows.length === SHOWN) return { rows, next: textOf(place!), unread }
          rows.push({ ...standing, database: name })
          place = { database: name, ...at }
        }
        if (++pages === MOST_PAGES) return { rows, next: place && textOf(place), isCut: true, unread }
      }
    } catch (thrown) {
      if (!isOfOneDatabase(thrown)) throw thrown
      unread.push(unreadInWords(name, thrown))
    }
  }
  return { rows, next: undefined, unread }
}

const textOf = ({ database, key, id }: Place & { readonly database: string }) => JSON.stringify([database, key, id])

function placeFrom(text: string): Place & { readonly database: string } {
  const bad = () => new HttpError(400, 'bad_request', 'This is not a position in the list: start with its first page.')
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw bad()
  }
  const [database, key, id] = Array.isArray(parsed) ? (parsed as unknown[]) : []
  if (typeof database !== 'string' || !Array.isArray(key) || typeof id !== 'string') throw bad()
  return { database, key, id }
}

const TOGETHER = 16

/** Lists the first documents with this id prefix, in any status. Throws `CouchError`. */
export async function listById({ couch, databases, signal }: ListOptions, prefix: string): Promise<Listing> {
  const rows: Row[] = []
  const unread: string[] = []
  const read = ({ name }: CountedDatabase) =>
    couch
      .db(name)
      .withPrefix(prefix, { signal }, SHOWN)
      .catch((thrown: unknown) => {
        if (!isOfOneDatabase(thrown)) throw thrown
        if (thrown.code !== 'not_found') unread.push(unreadInWords(name, thrown)) // `not_found`: deleted meanwhile
        return []
      })
      .then((docs) => docs.map((doc) => ({ ...standingOf(doc), database: name })))
  for (let at = 0; at < databases.length && rows.length < SHOWN; at += TOGETHER)
    rows.push(...(await Promise.all(databases.slice(at, at + TOGETHER).map(read))).flat())
  return { rows: rows.slice(0, SHOWN), next: undefined, isCut: rows.length >= SHOWN, unread }
}
