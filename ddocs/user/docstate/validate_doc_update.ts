/**
 * Guards a user's control database. Only the user's own devices write there, often after some time offline: they may
 * have made several steps, and what they write wrongly becomes a document in `error`, which they see, not a refusal,
 * which they do not. Where CouchDB has no more what they changed, it cannot be told what the sidecar wrote there: it goes by
 * none of that. Documents of other types are the app's.
 */
import { forbid, has, isAdmin, type Doc, type UserCtx } from '../../lib/document.ts'
import { beforeOf, isUponUnknown, refusalOf, withItsOwner } from '../../lib/guard.ts'
import { presentOf, unchangedFaults, unknownFaults } from '../../lib/shape.ts'
import type { Machines } from '../../machine.ts'

/** What the sidecar writes in documents of a type. */
const SIDECARS: Readonly<Record<string, readonly string[]>> = {
  device: ['user', 'name', 'owner', 'owner_role', 'device_id', 'error'],
  channel: ['left', 'database', 'syncpoint', 'owner_role', 'error'],
  subscription: ['from', 'error'],
}

/** Characters of JSON, with the revisions: more than a channel of 250 members has. */
const MOST = 150_000

/** Only the sidecar makes documents of these ids. */
const RESERVED = /^(device-|channel:)/
const OF_DEVICES = /^device-/
/** Documents of these ids are subscriptions, also those that a device makes. */
const OF_SUBSCRIPTIONS = /^subscription:/

export default function validate(
  this: { readonly machines: Machines },
  newDoc: Doc,
  oldDoc: Doc | null,
  userCtx: UserCtx,
): void {
  if (isAdmin(userCtx)) return
  const there = beforeOf({ oldDoc })
  const before = there?.type === newDoc.type ? there : null // what the app wrote in a document of another type counts for nothing
  const { type } = newDoc
  const mayLeaveOut = type !== 'device' // a device's copy says which device it is
  const doc = mayLeaveOut ? withItsOwner(newDoc, before) : newDoc
  const refusal = refusalOf({ newDoc: doc, oldDoc, userCtx, machines: this.machines, mayHaveSteps: true })
  if (refusal !== undefined) forbid(refusal)
  const isUnknown = isUponUnknown({ newDoc, oldDoc })
  const isRevoked = isUnknown && type === 'device' && OF_DEVICES.test(String(newDoc._id))
  const isOurs = type === 'device' || RESERVED.test(String(newDoc._id))
  if (!there && isOurs && !isRevoked) forbid('documents whose ids begin so are the sidecar’s own')
  if (!there && type !== 'subscription' && OF_SUBSCRIPTIONS.test(String(newDoc._id)))
    forbid('documents whose ids begin so are subscriptions')
  if (typeof type !== 'string' || !has(SIDECARS, type)) return
  const fields = presentOf({ ...before, ...newDoc }, SIDECARS[type] ?? [])
  const kept = fields.filter((field) => has(newDoc, field) || !mayLeaveOut)
  const forged = isUnknown ? [] : unchangedFaults(newDoc, before, kept, 'what the sidecar wrote')
  const faults = [...forged, ...sizeFaults(newDoc)]
  if (faults.length > 0) forbid(faults.join('; '))
}

/** What could not be read or merged any more would hold up what becomes of it. */
function sizeFaults(doc: Doc): string[] {
  const fields = ['type', 'state', 'docstate', ...(SIDECARS.device ?? [])]
  const faults = doc.type === 'device' ? unknownFaults(doc, fields) : []
  if (doc._attachments !== undefined) faults.push('_attachments: expected none')
  const size = JSON.stringify(doc).length
  return size > MOST ? [...faults, `expected up to ${MOST} characters of JSON, got ${size}`] : faults
}
