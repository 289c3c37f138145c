/** The fields of a channel document that an owner requests. */
import { isDeepStrictEqual } from 'node:util'
import type { Doc } from '../../couch/documents.ts'
import { normaliseAddress } from '../../accounts/owner.ts'
import { membersOf } from '../shape.ts'

export const REQUESTED = ['members', 'data'] as const
type RequestedField = (typeof REQUESTED)[number]

/** States in which the sidecar has seen the requested fields, or refused them. */
const SEEN = ['accepted', 'ready', 'error']

export const isSeen = ({ state }: Doc): boolean => SEEN.includes(String(state))

/** Undefined if `members` is no list of addresses. An absent list counts as empty. */
export const listOf = (members: unknown = []): readonly string[] | undefined =>
  Array.isArray(members) && members.every((member) => typeof member === 'string') ? members : undefined

export const requestsTheSame = (one: Doc, other: Doc, field: RequestedField): boolean =>
  isDeepStrictEqual(requestedIn(one, field), requestedIn(other, field))

/** The value of a field, with members normalised and sorted. */
function requestedIn(doc: Doc, field: RequestedField): unknown {
  const members = field === 'members' ? listOf(doc.members) : undefined
  return members ? membersOf({ members, owner: String(doc.owner) }) : doc[field]
}

/** Members on both lists, and members added to one since `base`. Undefined if an argument is no list. */
export function mergeMembers(ours: unknown, theirs: unknown, base: unknown): readonly string[] | undefined {
  const [one, other, before] = [ours, theirs, base].map(listOf)
  if (!one || !other || !before) return undefined
  const has = (list: readonly string[], member: string) =>
    list.some((listed) => normaliseAddress(listed) === normaliseAddress(member))
  const kept = one.filter((member) => has(other, member) || !has(before, member))
  return [...kept, ...other.filter((member) => !has(one, member) && !has(before, member))]
}
