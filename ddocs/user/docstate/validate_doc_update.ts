/**
 * Guards a user's control database. Only the user's own devices write to it, often after some time offline, so a write
 * may combine several steps. An invalid request becomes a document in `error`, because devices see it; they do not see
 * a refusal. If CouchDB no longer has the changed content, nothing shows what the sidecar wrote: such fields are not
 * compared. Documents of other types belong to the app.
 */
import { forbid, has, isAdmin, type Doc, type UserCtx } from '../../lib/document.ts'
import { beforeOf, isUponUnknown, refusalOf, withItsOwner } from '../../lib/guard.ts'
import { presentOf, unchangedFaults, unknownFaults } from '../../lib/shape.ts'
import type { Machines } from '../../machine.ts'

/** Fields that only the sidecar writes, by document type. */
const SIDECARS: Readonly<Record<string, readonly string[]>> = {
  device: ['user', 'name', 'owner', 'owner_role', 'device_id', 'error'],
  channel: ['left', 'database', 'syncpoint', 'owner_role', 'error'],
  subscription: ['from', 'error'],
}

/** Maximum size in characters of JSON, with the revisions: more than a channel of 250 members has. */
const MOST = 150_000

/** Only the sidecar creates documents with these ids. */
const RESERVED = /^(device-|channel:)/
const OF_DEVICES = /^device-/
/** Documents with these ids are subscriptions, even if a device creates them. */
const OF_SUBSCRIPTIONS = /^subscription:/

export default function validate(
  this: { readonly machines: Machines },
  newDoc: Doc,
  oldDoc: Doc | null,
  userCtx: UserCtx,
): void {
  if (isAdmin(userCtx)) return
  const current = beforeOf({ oldDoc })
  const before = current?.type === newDoc.type ? current : null // what the app wrote in a document of another type counts for nothing
  const { type } = newDoc
  const mayLeaveOut = type !== 'device' // a device's copy says which device it is
  const doc = mayLeaveOut ? withItsOwner(newDoc, before) : newDoc
  const refusal = refusalOf({ newDoc: doc, oldDoc, userCtx, machines: this.machines, mayHaveSteps: true })
  if (refusal !== undefined) forbid(refusal)
  const isUnknown = isUponUnknown({ newDoc, oldDoc })
  const isRevoked = isUnknown && type === 'device' && OF_DEVICES.test(String(newDoc._id))
  const isOurs = type === 'device' || RESERVED.test(String(newDoc._id))
  if (!current && isOurs && !isRevoked) forbid('documents whose ids begin so are the sidecar’s own')
  if (!current && type !== 'subscription' && OF_SUBSCRIPTIONS.test(String(newDoc._id)))
    forbid('documents whose ids begin so are subscriptions')
  if (typeof type !== 'string' || !has(SIDECARS, type)) return
  const fields = presentOf({ ...before, ...newDoc }, SIDECARS[type] ?? [])
  const kept = fields.filter((field) => has(newDoc, field) || !mayLeaveOut)
  const forged = isUnknown ? [] : unchangedFaults(newDoc, before, kept, 'what the sidecar wrote')
  const faults = [...forged, ...sizeFaults(newDoc)]
  if (faults.length > 0) forbid(faults.join('; '))
}

/** A document too large to read or merge would block its own handling. */
function sizeFaults(doc: Doc): string[] {
  const fields = ['type', 'state', 'docstate', ...(SIDECARS.device ?? [])]
  const faults = doc.type === 'device' ? unknownFaults(doc, fields) : []
  if (doc._attachments !== undefined) faults.push('_attachments: expected none')
  const size = JSON.stringify(doc).length
  return size > MOST ? [...faults, `expected up to ${MOST} characters of JSON, got ${size}`] : faults
}
