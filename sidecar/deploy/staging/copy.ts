import type { Doc } from '../../couch/documents.ts'

/** Prefix of the deploy's own design documents. */
export const OWN_PREFIX = '_design/sidecar:'

export type CopyKind = 'staged' | 'previous'

export const copyId = (kind: CopyKind, id: string): string => `${OWN_PREFIX}${kind}:${id.slice('_design/'.length)}`

export const isCopy = (id: string): boolean =>
  id.startsWith(copyId('staged', '_design/')) || id.startsWith(copyId('previous', '_design/'))

/**
 * A design document with the same index: all fields that decide its signature, and no function that CouchDB calls for
 * a request. Only the deploy builds this index: ken would retry a failing build without end.
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

/** Names of the views that can be queried. */
export const viewNames = (ddoc: Doc | undefined): string[] =>
  Object.keys(Object(ddoc?.views) as object).filter((name) => name !== 'lib')

/** Whether both have the same index. Order counts: to swap two views of one function changes the signature. */
export const sameIndex = (before: Doc, after: Doc): boolean =>
  JSON.stringify(groupOf(before)) === JSON.stringify(groupOf(after))
