import type { Doc } from '../../couch/documents.ts'

/** Design documents whose names begin so are the deploy's own. */
export const OWN_PREFIX = '_design/sidecar:'

export type CopyKind = 'staged' | 'previous'

export const copyId = (kind: CopyKind, id: string): string => `${OWN_PREFIX}${kind}:${id.slice('_design/'.length)}`

export const isCopy = (id: string): boolean =>
  id.startsWith(copyId('staged', '_design/')) || id.startsWith(copyId('previous', '_design/'))

/**
 * What has the same index and does nothing: all that decides the signature, and no function that CouchDB calls for a
 * request. Only the deploy has it built: not ken, which would begin again and again with one that cannot be.
 */
export const copyOf = (kind: CopyKind, ddoc: Doc): Doc => ({
  _id: copyId(kind, ddoc._id),
  ...groupOf(ddoc),
  autoupdate: false,
})

const groupOf = ({ language, options, views }: Doc) => ({
  ...(language !== undefined && { language }),
  ...(options !== undefined && { options }),
  views,
})

/** The views that can be asked. */
export const viewNames = (ddoc: Doc | undefined): string[] =>
  Object.keys(Object(ddoc?.views) as object).filter((name) => name !== 'lib')

/** In the same order, too: two views of one function have another signature the other way round. */
export const sameIndex = (before: Doc, after: Doc): boolean =>
  JSON.stringify(groupOf(before)) === JSON.stringify(groupOf(after))
