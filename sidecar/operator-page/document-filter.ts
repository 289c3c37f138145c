/** The filter for documents that a form or an address holds, and what it selects. */
import { STATUSES, type Status } from '../../ddocs/lib/status.ts'
import { parseDuration } from '../core/duration.ts'
import { isAmong } from '../core/glob.ts'
import type { CountedDatabase } from '../databases/stuck.ts'
import { AGELESS, countsFor, type Filter } from '../docstate/operator/find.ts'
import { HttpError } from '../http/http-errors.ts'

export interface DocumentFilter {
  /** A name or a glob. */
  readonly db?: string | undefined
  readonly type?: string | undefined
  readonly state?: string | undefined
  readonly status?: Status | undefined
  readonly code?: string | undefined
  /** Minimum time in the status, such as `2h`. */
  readonly older?: string | undefined
  /** Prefix of ids. With it, only `db` counts besides. */
  readonly id?: string | undefined
  /** Position of an earlier page's end. */
  readonly after?: string | undefined
}

/** Reads the filter. Throws `HttpError` if it can match no document. */
export function documentFilterFrom(fields: Readonly<Record<string, string | undefined>>): DocumentFilter {
  const [db, type, state, code, id, after] = ['db', 'type', 'state', 'code', 'id', 'after'].map(
    (name) => fields[name] || undefined,
  )
  const status = fields.status || undefined
  const older = fields.older?.trim() || undefined
  if (status !== undefined && !isStatus(status)) throw bad(`There is no status ${status}.`)
  if (older !== undefined && parseDuration(older) === undefined)
    throw bad(`Expected a time such as 90s, 30m, 2h or 7d, got ${older}.`)
  if (older !== undefined && status !== undefined && AGELESS.includes(status))
    throw bad(`Documents do not record since when they are ${status}. Leave the age out.`)
  return { db, type, state, status, code, older, id, after }
}

const bad = (reason: string) => new HttpError(400, 'bad_request', reason)

const isStatus = (text: string): text is Status => (STATUSES as readonly string[]).includes(text)

export const filterOf = ({ type, state, status, code, older }: DocumentFilter): Filter => ({
  ...{ type, state, code },
  ...(status && { statuses: [status] }),
  ...(older && { olderThanMs: parseDuration(older) }),
})

/** Whether counts are an upper bound: they ignore ages, and the states and codes of discarded documents. */
export const isUpperBound = ({ older, status }: DocumentFilter): boolean =>
  older !== undefined || status === 'discarded'

/** Whether the filter selects this database. */
export const selectsDatabase = ({ db }: DocumentFilter, name: string): boolean =>
  db === undefined || isAmong(name, [db])

/** The counted databases that the filter selects. */
export const selectDatabases = (
  filter: DocumentFilter,
  databases: readonly CountedDatabase[],
): readonly CountedDatabase[] => databases.filter(({ name }) => selectsDatabase(filter, name))

/** Maximum number of documents that a filter selects (`isUpperBound`). */
export const maxSelected = (filter: DocumentFilter, databases: readonly CountedDatabase[]): number =>
  selectDatabases(filter, databases)
    .flatMap(({ counted }) => (counted ? countsFor(counted, filterOf(filter)) : []))
    .reduce((sum, { count }) => sum + count, 0)
