/**
 * Revisions as the writers of the inbox count them. Those of the stored documents are others: the sidecar writes there
 * too, and no client sees them.
 */
const REVISION = /^([1-9]\d{0,14})-([\w.~-]{1,64})$/

export const isRevision = (value: unknown): value is string => typeof value === 'string' && REVISION.test(value)

/** The one after this one; the first, if there is none. */
export const nextRevision = (rev: string | undefined, hash: string): string =>
  `${rev === undefined ? 1 : generationOf(rev) + 1}-${hash}`

/** As CouchDB chooses between two ends of a history: the longer one, or else the greater hash. */
export function winsOver(rev: string, other: string): boolean {
  const [generation, others] = [generationOf(rev), generationOf(other)]
  return generation === others ? rev > other : generation > others
}

const generationOf = (rev: string): number => Number(REVISION.exec(rev)?.[1])
