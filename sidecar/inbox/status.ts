import { isObject } from '../../ddocs/lib/document.ts'
import type { Home } from '../accounts/home.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { lastRevision } from './decide.ts'

/** What the writer of a document may know of it. */
export interface Status {
  readonly _id: string
  /** The writer's last one that was taken in: to be named by the next. */
  readonly _rev?: string | undefined
  readonly type: unknown
  readonly state: unknown
  /** Without the reason: a mail server may say there whom it knows. */
  readonly error?: { readonly code: unknown; readonly at: unknown } | undefined
  /** The device's own CouchDB user, once it has one. */
  readonly user?: unknown
  /** The control database of its user, once that is there: its name and its address. */
  readonly database?: string
  readonly syncpoint?: string
}

/** @param id as the writer knows it */
export function statusOf(id: string, doc: StoredDoc, home?: Home): Status {
  const { type, state, user, error } = doc
  return {
    _id: id,
    _rev: lastRevision(doc),
    type,
    state,
    ...(state === 'error' && isObject(error) && { error: { code: error.code, at: error.at } }),
    ...(type === 'device' && { user, ...home }),
  }
}
