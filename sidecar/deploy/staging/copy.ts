import type { Doc } from '../../couch/documents.ts'
import { compareDdocs } from '../compare.ts'

/** Design documents whose names begin so are the deploy's own. */
export const OWN_PREFIX = '_design/sidecar:'

export type CopyKind = 'staged' | 'previous'

export const copyId = (kind: CopyKind, id: string): string => `${OWN_PREFIX}${kind}:${id.slice('_design/'.length)}`

/**
 * What has the same index and does nothing: all that decides the signature, and no function that CouchDB calls for a
 * request. Nobody but the deploy has it built: not ken, which would begin again and again with one that cannot be.
 */
export function copyOf(kind: CopyKind, { _id, language, options, views }: Doc): Doc {
  const group = { ...(language !== undefined && { language }), ...(options !== undefined && { options }), views }
  return { _id: copyId(kind, _id), ...group, autoupdate: false }
}

/** The views that can be asked. */
export const viewNames = (ddoc: Doc | undefined): string[] =>
  Object.keys(Object(ddoc?.views) as object).filter((name) => name !== 'lib')

export const sameIndex = (before: Doc, after: Doc): boolean =>
  compareDdocs(copyOf('staged', before), copyOf('staged', after)).length === 0
