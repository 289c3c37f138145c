import type { StoredDoc } from '../couch/documents.ts'

/**
 * A handler for the end of a document: it is deleted. What stays is a tombstone that says what it was, and nothing that stood
 * in it.
 */
export const forget = <State extends string>({ _id, _rev, type, state }: StoredDoc & { readonly state: State }) =>
  Promise.resolve({ _id, _rev, type, state, _deleted: true as const })
