import { isDeepStrictEqual } from 'node:util'
import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import type { Conflict } from './merge.ts'

/** An attachment as read with its document, without its body. */
interface Stub {
  readonly content_type: string
  readonly digest: string
  /** Length of the body in bytes. */
  readonly length: number
}
export type Stubs = Readonly<Record<string, Stub>>

const attachmentsOf = (doc: Doc | undefined): Stubs => (doc?._attachments ?? {}) as Stubs

const sameAttachment = (a: Stub | undefined, b: Stub | undefined): boolean =>
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

/** Maximum bytes to carry from branch to branch: all are in memory for a moment, several times. */
export const MOST_BYTES = 16 * 1024 * 1024

/**
 * Adds the attachment bodies that the parent revision lacks to the merged document. CouchDB resolves stubs only from
 * the parent. Returns `too-large` above `MOST_BYTES`. Throws `CouchError`.
 */
export async function carryBodies(
  database: Database,
  merged: StoredDoc,
  [shown, ...others]: readonly StoredDoc[],
  options: CallOptions,
): Promise<StoredDoc | 'too-large'> {
  const has = (leaf: StoredDoc, name: string, stub: Stub) => sameAttachment(attachmentsOf(leaf)[name], stub)
  const sources = new Map<StoredDoc, string[]>()
  for (const [name, stub] of Object.entries(attachmentsOf(merged))) {
    if (has(shown!, name, stub)) continue
    const source = others.find((leaf) => has(leaf, name, stub))!
    sources.set(source, [...(sources.get(source) ?? []), name])
  }
  const sizes = [...sources.keys()].flatMap((leaf) => Object.values(attachmentsOf(leaf))).map(({ length }) => length)
  if (sizes.reduce((sum, length) => sum + length, 0) > MOST_BYTES) return 'too-large'
  if (sources.size === 0) return merged

  const _attachments: Record<string, unknown> = { ...attachmentsOf(merged) }
  for (const [{ _id, _rev }, names] of sources) {
    const whole = await database.get(_id, { rev: _rev, attachments: true }, options)
    const bodies = (whole._attachments ?? {}) as Record<string, { content_type: string; data: string }>
    for (const name of names) {
      const { content_type, data } = bodies[name]!
      _attachments[name] = { content_type, data }
    }
  }
  return { ...merged, _attachments }
}
