import type { Doc, StoredDoc } from '../couch/documents.ts'

/** One index: that of all views of a design document, or one full-text index. */
export interface Index {
  readonly database: string
  /** `_design/name` */
  readonly ddoc: string
  readonly kind: IndexKind
  /** Name in the design document. For views, any view: each one builds the index of all views. */
  readonly name: string
  /** Revision of the design document. */
  readonly rev: string
}

/** `search` is Clouseau's. */
export type IndexKind = 'view' | 'search' | 'nouveau'

/** Field of the design document for each kind; `autoupdate` uses the same names. */
const fields = { view: 'views', search: 'indexes', nouveau: 'nouveau' } as const satisfies Record<IndexKind, string>

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The indexes of a design document that are built before a query. It omits those that `autoupdate` excludes, and kinds
 * that the server lacks. Design documents can hold any value.
 */
export function indexesOf(database: string, ddoc: StoredDoc, kinds: readonly IndexKind[]): Index[] {
  return kinds.flatMap((kind) => {
    const names = isAutomatic(ddoc, fields[kind]) ? namesIn(ddoc, kind) : []
    const own = kind === 'view' ? names.slice(0, 1) : names
    return own.map((name) => ({ database, ddoc: ddoc._id, kind, name, rev: ddoc._rev }))
  })
}

/** Like the server, treats every value except `false` as true. */
const isAutomatic = ({ autoupdate }: Doc, field: string): boolean =>
  autoupdate !== false && !(isFields(autoupdate) && autoupdate[field] === false)

function namesIn(ddoc: Doc, kind: IndexKind): string[] {
  const defined = ddoc[fields[kind]]
  if (!isFields(defined)) return []
  const isIndex = (name: string) =>
    kind !== 'view' || (name !== 'lib' && isFields(defined[name]) && 'map' in defined[name])
  return Object.keys(defined).filter(isIndex)
}

/** Key of an index, unique in its database. */
export const keyOf = ({ ddoc, kind, name }: Index): string => (kind === 'view' ? ddoc : `${ddoc} ${kind} ${name}`)
