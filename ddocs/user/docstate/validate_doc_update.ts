/**
 * Guards a user's control database. Only the user's own devices write there, often after some time offline: they may
 * have made several steps, and what they write wrongly becomes a document in `error`, which they see, not a refusal,
 * which they do not. Documents of other types are the app's.
 */
import { forbid, has, isAdmin, type Doc, type UserCtx } from '../../lib/document.ts'
import { asAskedAgain, beforeOf, refusalOf } from '../../lib/guard.ts'
import { presentOf, unchangedFaults, unknownFaults } from '../../lib/shape.ts'
import type { Machines } from '../../machine.ts'

/** What the sidecar writes in documents of a type. */
const SIDECARS: Readonly<Record<string, readonly string[]>> = {
  device: ['user', 'name', 'owner', 'owner_role', 'device_id', 'error'],
  channel: ['database', 'syncpoint', 'owner_role', 'error'],
  subscription: ['from', 'error'],
}

/** Characters of JSON, with the revisions: more than a channel of 250 members has. */
const MOST = 150_000

/** The sidecar makes documents of these ids, and nobody else. */
const RESERVED = /^(device-|channel:)/

export default function validate(
  this: { readonly machines: Machines },
  newDoc: Doc,
  oldDoc: Doc | null,
  userCtx: UserCtx,
): void {
  if (isAdmin(userCtx)) return
  const there = beforeOf({ oldDoc })
  const before = there?.type === newDoc.type ? there : null // what the app wrote in a document of its own, nobody has given
  const doc = asAskedAgain(newDoc, before)
  const refusal = refusalOf({ newDoc: doc, oldDoc, userCtx, machines: this.machines, mayHaveSteps: true })
  if (refusal !== undefined) forbid(refusal)
  if (!there && RESERVED.test(String(newDoc._id))) forbid('documents whose ids begin so are the sidecar’s own')
  const { type } = newDoc
  if (typeof type !== 'string' || !has(SIDECARS, type)) return
  const fields = presentOf({ ...before, ...newDoc }, SIDECARS[type] ?? [])
  // Whoever asks anew may leave them out; and an error, whoever leaves that state.
  const kept = fields.filter((field) => has(newDoc, field) || (newDoc.state !== 'new' && field !== 'error'))
  const faults = [...unchangedFaults(newDoc, before, kept, 'what the sidecar wrote'), ...sizeFaults(newDoc)]
  if (faults.length > 0) forbid(faults.join('; '))
}

/**
 * What could not be read or merged any more would hold up what becomes of it. A device is no larger than the sidecar made
 * it: there is nothing in two of them that could not be merged.
 */
function sizeFaults(doc: Doc): string[] {
  if (doc.type === 'device') return unknownFaults(doc, ['type', 'state', 'docstate', ...(SIDECARS.device ?? [])])
  if (doc._attachments !== undefined) return ['_attachments: expected none']
  const size = JSON.stringify(doc).length
  return size > MOST ? [`expected up to ${MOST} characters of JSON, got ${size}`] : []
}
