import { createHash } from 'node:crypto'
import type { Doc } from '../couch/documents.ts'

/** One field that differs. `field` is its path: `views.by_state.map`. */
export type Change =
  | { readonly kind: 'added'; readonly field: string; readonly after: unknown }
  | { readonly kind: 'removed'; readonly field: string; readonly before: unknown }
  | { readonly kind: 'changed'; readonly field: string; readonly before: unknown; readonly after: unknown }

/** What has to change in `before` (nothing: it is not there) to make it `after`. Order of keys and `_rev` do not count. */
export function compareDdocs(before: Doc | undefined, after: Doc): Change[] {
  return [...changesIn(comparable(before), comparable(after), [])]
}

/** Of attachments, what was written and not what CouchDB adds. */
function comparable(doc: Doc | undefined): Fields {
  if (!doc) return {}
  const { _id, _rev, _attachments, ...fields } = doc
  if (!isFields(_attachments)) return fields
  const written = Object.entries(_attachments).map(([name, { content_type, data }]) => [name, { content_type, data }])
  return { ...fields, _attachments: Object.fromEntries(written) as unknown }
}

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Record<string, { content_type?: unknown; data?: unknown }> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function* changesIn(before: unknown, after: unknown, path: readonly string[]): Generator<Change> {
  if (isFields(before) && isFields(after)) {
    for (const key of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
      yield* changesIn(before[key], after[key], [...path, key])
    }
    return
  }
  const field = path.join('.')
  if (before === undefined && after !== undefined) yield { kind: 'added', field, after }
  else if (before !== undefined && after === undefined) yield { kind: 'removed', field, before }
  else if (canonical(before) !== canonical(after)) yield { kind: 'changed', field, before, after }
}

/** Equal for those between which nothing would have to change. */
export const digestOf = (doc: Doc): string =>
  createHash('sha256')
    .update(canonical(comparable(doc)))
    .digest('hex')

/** JSON with its keys in order. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    isFields(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
