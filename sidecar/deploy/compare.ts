import { createHash } from 'node:crypto'
import type { Doc } from '../couch/documents.ts'

/** One field that differs. `field` is its path: `views.by_state.map`. */
export type Change =
  | { readonly kind: 'added'; readonly field: string; readonly after: unknown }
  | { readonly kind: 'removed'; readonly field: string; readonly before: unknown }
  | { readonly kind: 'changed'; readonly field: string; readonly before: unknown; readonly after: unknown }

/** Changes that turn `before` (undefined: no document) into `after`. Ignores `_rev` and the order of keys. */
export function compareDdocs(before: Doc | undefined, after: Doc): Change[] {
  return [...changesIn(comparable(before), comparable(after), [])]
}

/** The fields to compare: of an attachment, only its type and data, not the properties that CouchDB adds. */
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

/** Digest of the fields to compare: equal digests mean no changes. */
export const digestOf = (doc: Doc): string =>
  createHash('sha256')
    .update(canonical(comparable(doc)))
    .digest('hex')

/** JSON with sorted keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    isFields(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
