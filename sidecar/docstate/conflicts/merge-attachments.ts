import { isDeepStrictEqual } from 'node:util'
import type { Doc } from '../../couch/documents.ts'
import type { Conflict } from './merge.ts'

/** An attachment as read with its document, without its body. */
export interface Stub {
  readonly content_type: string
  readonly digest: string
  /** Length of the body in bytes. */
  readonly length: number
}
export type Stubs = Readonly<Record<string, Stub>>

export const attachmentsOf = (doc: Doc | undefined): Stubs => (doc?._attachments ?? {}) as Stubs

export const sameAttachment = (a: Stub | undefined, b: Stub | undefined): boolean =>
  a === b || (!!a && !!b && a.digest === b.digest && a.content_type === b.content_type)

export function sameAttachments(a: Doc, b: Doc): boolean {
  const [ours, theirs] = [attachmentsOf(a), attachmentsOf(b)]
  const names = Object.keys(ours).sort()
  return (
    isDeepStrictEqual(names, Object.keys(theirs).sort()) &&
    names.every((name) => sameAttachment(ours[name], theirs[name]))
  )
}

/**
 * Merges attachments by name, like fields: applies to `ours` what `theirs` added, changed or removed since the base.
 */
export function mergeAttachments({ ours, theirs, base }: Conflict): Stubs {
  const [merged, after, before] = [new Map(entriesOf(ours)), attachmentsOf(theirs), attachmentsOf(base)]
  for (const name of new Set([...Object.keys(after), ...Object.keys(before)])) {
    if (base && sameAttachment(before[name], after[name])) continue
    const attachment = after[name]
    if (attachment) merged.set(name, attachment)
    else merged.delete(name)
  }
  return Object.fromEntries(merged)
}

const entriesOf = (doc: Doc) => Object.entries(attachmentsOf(doc))
