import { isDeepStrictEqual } from 'node:util'
import { ADDRESS } from '../../ddocs/lib/device.ts'
import { quote, type Doc } from '../../ddocs/lib/document.ts'
import { patternFaults, textFaults, unknownFaults } from '../../ddocs/lib/shape.ts'
import { normaliseAddress } from '../devices/names.ts'
import type { Channel, ChannelRecord } from './documents.ts'

/** Enough for a club. Each of them is told of each change of the others. */
const MOST_MEMBERS = 250

/** What is wrong with a channel document, as sentences. None: it is well formed. */
export const channelFaults = (doc: Doc): string[] => [
  ...textFaults(doc, '_id', 200),
  ...textFaults(doc, 'name', 100),
  ...patternFaults(doc, 'owner', ADDRESS, 'an email address'),
  ...membersFaults(doc.members),
  ...unknownFaults(doc, [
    ...['type', 'state', 'name', 'owner', 'members', 'close'],
    ...['database', 'syncpoint', 'owner_role', 'error', 'docstate'],
  ]),
]

function membersFaults(members: unknown): string[] {
  if (members === undefined) return []
  if (!Array.isArray(members) || members.length > MOST_MEMBERS) {
    const got = Array.isArray(members) ? String(members.length) : quote(members)
    return [`members: expected an array of up to ${MOST_MEMBERS} email addresses, got ${got}`]
  }
  const wrong: unknown[] = members.filter((member) => typeof member !== 'string' || !ADDRESS.test(member))
  return wrong.slice(0, 3).map((member) => `members: expected email addresses, got ${quote(member)}`)
}

/** Each once, in one spelling and order. The owner is none of them. */
export function membersOf({ members, owner }: { readonly members?: readonly string[]; readonly owner: string }) {
  const addresses = new Set((members ?? []).map(normaliseAddress))
  addresses.delete(normaliseAddress(owner))
  return [...addresses].sort()
}

/** Whether a record says what its channel document does. */
export const isAsWished = (record: ChannelRecord, wish: Channel): boolean =>
  isDeepStrictEqual(record.members, membersOf(wish))

/** What is wrong with a subscription, as sentences. */
export const subscriptionFaults = (doc: Doc): string[] => [
  ...textFaults(doc, 'channel_id', 200),
  ...(doc._id === `subscription:${String(doc.channel_id)}`
    ? []
    : [`_id: expected subscription: and the channel_id, got ${quote(doc._id)}`]),
]
