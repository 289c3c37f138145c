import type { Doc, StoredDoc } from '../couch/documents.ts'

/** One index: of all views of a design document together, or one for full text. */
export interface Index {
  readonly database: string
  /** `_design/name` */
  readonly ddoc: string
  readonly kind: IndexKind
  /** Which of the design document's. Of views any one: each of them builds the index of all. */
  readonly name: string
  /** Of the design document. */
  readonly rev: string
}

/** `search` is Clouseau's. */
export type IndexKind = 'view' | 'search' | 'nouveau'

/** Where a design document has them, and what `autoupdate` calls them. */
const fields = { view: 'views', search: 'indexes', nouveau: 'nouveau' } as const satisfies Record<IndexKind, string>

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The indexes of a design document that are to be built before they are queried: not those that it has taken out by
 * `autoupdate`, nor of a kind that the server has not. Design documents can hold anything.
 */
export function indexesOf(database: string, ddoc: StoredDoc, kinds: readonly IndexKind[]): Index[] {
  return kinds.flatMap((kind) => {
    const names = isAutomatic(ddoc, fields[kind]) ? namesIn(ddoc, kind) : []
    const own = kind === 'view' ? names.slice(0, 1) : names
    return own.map((name) => ({ database, ddoc: ddoc._id, kind, name, rev: ddoc._rev }))
  })
}

/** As the server judges: whatever is not `false` means yes. */
const isAutomatic = ({ autoupdate }: Doc, field: string): boolean =>
  autoupdate !== false && !(isFields(autoupdate) && autoupdate[field] === false)

function namesIn(ddoc: Doc, kind: IndexKind): string[] {
  const defined = ddoc[fields[kind]]
  if (!isFields(defined)) return []
  const isIndex = (name: string) =>
    kind !== 'view' || (name !== 'lib' && isFields(defined[name]) && 'map' in defined[name])
  return Object.keys(defined).filter(isIndex)
}

/** Of an index among those of its database. */
export const keyOf = ({ ddoc, kind, name }: Index): string => (kind === 'view' ? ddoc : `${ddoc} ${kind} ${name}`)
