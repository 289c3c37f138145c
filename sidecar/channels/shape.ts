import { isDeepStrictEqual } from 'node:util'
import { ADDRESS } from '../../ddocs/lib/device.ts'
import { isObject, quote, type Doc } from '../../ddocs/lib/document.ts'
import { patternFaults, textFaults, unknownFaults } from '../../ddocs/lib/shape.ts'
import { normaliseAddress } from '../accounts/owner.ts'
import type { Channel, ChannelRecord } from './channel-documents.ts'
import { normaliseName } from './channel-names.ts'

/** Maximum number of members: enough for a club. Each member is notified of each change of the others. */
const MOST_MEMBERS = 250
/** Maximum size of all members as JSON, bytes: 65 for each member. */
const MOST_ADDRESSES = 16_384
/** Maximum size of `data` as JSON, bytes: the database of each member has a copy. */
const MOST_DATA = 4096

/** Faults of a channel document, as sentences. Empty if the document is well formed. */
export const channelFaults = (doc: Doc): string[] => [
  ...textFaults(doc, '_id', 200),
  ...textFaults(doc, 'name', 100),
  ...patternFaults(doc, 'owner', ADDRESS, 'an email address'),
  ...membersFaults(doc.members),
  ...dataFaults(doc.data),
  ...unknownFaults(doc, [
    ...['type', 'state', 'name', 'owner', 'members', 'data', 'close'],
    ...['left', 'database', 'syncpoint', 'owner_role', 'error', 'docstate'],
  ]),
]

function dataFaults(data: unknown): string[] {
  if (data === undefined) return []
  const size = isObject(data) ? sizeOf(data) : Infinity
  if (size <= MOST_DATA) return []
  const got = isObject(data) ? `${size}` : quote(data)
  return [`data: expected an object of up to ${MOST_DATA} bytes of JSON, got ${got}`]
}

function membersFaults(members: unknown): string[] {
  if (members === undefined) return []
  if (!Array.isArray(members) || members.length > MOST_MEMBERS) {
    const got = Array.isArray(members) ? String(members.length) : quote(members)
    return [`members: expected an array of up to ${MOST_MEMBERS} email addresses, got ${got}`]
  }
  const wrong: unknown[] = members.filter((member) => typeof member !== 'string' || !ADDRESS.test(member))
  if (wrong.length > 0) return wrong.slice(0, 3).map((one) => `members: expected email addresses, got ${quote(one)}`)
  const size = sizeOf(members)
  return size > MOST_ADDRESSES ? [`members: expected up to ${MOST_ADDRESSES} bytes of JSON, got ${size}`] : []
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Members of a channel: unique, normalised and sorted, without the owner. */
export function membersOf({ members, owner }: { readonly members?: readonly string[]; readonly owner: string }) {
  const addresses = new Set((members ?? []).map(normaliseAddress))
  addresses.delete(normaliseAddress(owner))
  return [...addresses].sort()
}

/** Whether a record matches its channel document. */
export const isAsRequested = (record: ChannelRecord, request: Channel): boolean =>
  record.name === normaliseName(request.name) &&
  isDeepStrictEqual([record.members, record.data], [membersOf(request), request.data])

/** Faults of a subscription, as sentences. */
export const subscriptionFaults = (doc: Doc): string[] => [
  ...textFaults(doc, 'channel_id', 200),
  ...(doc._id === `subscription:${String(doc.channel_id)}`
    ? []
    : [`_id: expected subscription: and the channel_id, got ${quote(doc._id)}`]),
]
