/**
 * Revisions of the inbox's writers. The stored documents have other revisions: the sidecar writes those documents too,
 * and no client sees their revisions.
 */
const REVISION = /^([1-9]\d{0,14})-([\w.~-]{1,64})$/

export const isRevision = (value: unknown): value is string => typeof value === 'string' && REVISION.test(value)

/** The revision after `rev`; the first revision if `rev` is undefined. */
export const nextRevision = (rev: string | undefined, hash: string): string =>
  `${rev === undefined ? 1 : generationOf(rev) + 1}-${hash}`

/** Chooses between two leaf revisions as CouchDB does: the longer history wins, then the greater hash. */
export function winsOver(rev: string, other: string): boolean {
  const [generation, others] = [generationOf(rev), generationOf(other)]
  return generation === others ? rev > other : generation > others
}

const generationOf = (rev: string): number => Number(REVISION.exec(rev)?.[1])
