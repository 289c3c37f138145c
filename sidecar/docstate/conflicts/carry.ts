import type { CallOptions, Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { attachmentsOf, sameAttachment, type Stub } from './merge-attachments.ts'

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
