import { isDeepStrictEqual } from 'node:util'
import { type Clock, isoTime } from '../../core/clock.ts'
import type { Doc } from '../../couch/documents.ts'
import { mergeFields, type Conflict, type Resolver } from '../../docstate/conflicts/merge.ts'
import { isChangedTwice, CHANGED_TWICE } from '../channel-documents.ts'
import { closeOf, isEnding } from '../ending.ts'
import { isObject } from '../../../ddocs/lib/document.ts'
import { normaliseAddress } from '../../accounts/owner.ts'
import { normaliseName } from '../channel-names.ts'
import { membersOf } from '../shape.ts'

/** The fields that an owner requests. */
const REQUESTED = ['members', 'data'] as const
type RequestedField = (typeof REQUESTED)[number]

/** States in which the sidecar has seen the requested fields, or refused them. */
const SEEN = ['accepted', 'ready', 'error']

/**
 * Merges two documents of one channel. The document of the later life wins. Within one life, closing wins. Otherwise
 * the result has the requests of both.
 */
export const mergeChannel =
  (clock: Pick<Clock, 'now'>): Resolver =>
  (conflict) =>
    ofLaterLife(conflict) ?? ending(conflict) ?? withRequests(conflict) ?? withoutBase(conflict, clock)

/** A channel that was closed and made again has another database. Late changes of the earlier life do not apply. */
function ofLaterLife({ ours, theirs, base }: Conflict): Doc | undefined {
  const [one, other] = [ours.database, theirs.database]
  if (one === undefined || other === undefined || one === other) return undefined
  if (base?.database === one) return theirs
  if (base?.database === other) return ours
  // The record, and through it the sidecar, knows which is later. The sidecar's document counts, and is read again.
  const written = [ours, theirs].filter((doc) => isSeen(doc) || doc.state === 'closed')
  const counting = written.find((doc) => !isEnding(doc)) ?? written[0]
  const isRequested = counting?.state === 'accepted' || counting?.state === 'ready'
  return counting && isRequested ? { ...counting, state: 'new' } : counting
}

/** A closed channel stays closed, even if it was changed meanwhile. Undefined if neither side closed it. */
function ending({ ours, theirs, base }: Conflict): Doc | undefined {
  const [first, second] = [ours, theirs].filter(isEnding)
  if (!first) return undefined
  if (!second) return base && isEnding(base) ? [ours, theirs].find((doc) => !isEnding(doc)) : first // made again
  const ended = second.state === 'closed' ? second : first
  return ended.state === 'closed' ? ended : { ...ended, close: closeOf(first, second) }
}

/**
 * Merges the requests of both. The sidecar has not seen changes that the owner made during the sidecar's write, so the
 * result becomes `new`. (A seen request does not stay `new`, or the two would look alike.) Undefined if the changes are
 * unknown, or if the owner must clarify them anyway.
 */
function withRequests(conflict: Conflict): Doc | undefined {
  const { ours, theirs, base } = conflict
  if (!base || isChangedTwice(ours) || isChangedTwice(theirs)) return undefined
  const members = mergeMembers(ours.members, theirs.members, base.members)
  const merged = { ...mergeFields(conflict), ...(members && { members }) } as Doc
  const isChanged = REQUESTED.some((field) => !isDeepStrictEqual(merged[field], ours[field]))
  if (!isChanged || !isSeen(merged)) return merged
  const { error: _error, ...request } = merged as Doc & { error?: unknown }
  return { ...request, state: 'new' }
}

/*
 * Merging without a common revision: it is unknown what each side changed. CouchDB has compacted the revision away, or
 * the documents never had one.
 */

/** Maximum lengths in characters: of one requested value in the error's reason, and of the whole reason. */
const [SHOWN, MOST_SHOWN] = [300, 2000]

/**
 * The document that the sidecar has seen counts, so that a removed member does not come back. An error shows the owner
 * the other request, so that the owner can write again what is meant.
 */
function withoutBase(conflict: Conflict, clock: Pick<Clock, 'now'>): Doc {
  const [one, other] = inOrder(conflict)
  if (conflict.baseRev === undefined) return madeApart(one, other, clock)
  if (other.state !== 'new') return one
  const { base } = conflict
  const lost = REQUESTED.filter(
    (field) => !requestsTheSame(other, one, field) && !(base && requestsTheSame(other, base, field)),
  )
  if (lost.length === 0) return one
  if (!isSeen(one)) return { ...one, ...onBoth(one.members, other.members) } // its handler has yet to run
  const why =
    'changed twice, and CouchDB no longer has the previous revision; write the intended value again. The other revisions had'
  return changedTwice(one, why, other, lost, clock)
}

/**
 * Two devices made this channel without knowing of each other. Neither removed anything, so both requests count. With
 * different names these are two channels, but one document cannot be both: an error shows the owner the other one.
 */
function madeApart(one: Doc, other: Doc, clock: Pick<Clock, 'now'>): Doc {
  const [name, otherName] = [one, other].map(({ name }) => normaliseName(String(name)))
  if (name !== otherName) {
    const why = 'created twice with this _id, with different names; create the other one again with another _id. It had'
    return changedTwice(one, why, other, ['name', ...REQUESTED], clock)
  }
  const members = mergeMembers(one.members, other.members, [])
  const data = { ...(isObject(other.data) && other.data), ...(isObject(one.data) && one.data) }
  const both = { ...one, ...(members && { members }), ...(Object.keys(data).length > 0 && { data }) }
  if (isChangedTwice(one) || REQUESTED.every((field) => requestsTheSame(both, one, field))) return both
  const { error: _error, ...request } = both as Doc & { error?: unknown }
  return { ...request, state: 'new' }
}

/** The document that counts, in `error`, with the lost request in the reason. */
function changedTwice(one: Doc, why: string, other: Doc, lost: readonly string[], clock: Pick<Clock, 'now'>): Doc {
  const values = lost.map((field) => `${field}: ${beginningOf(JSON.stringify(other[field] ?? null), SHOWN)}`).join('; ')
  const reason = beginningOf(`${isChangedTwice(one) ? one.error.reason : why} ${values}`, MOST_SHOWN)
  return { ...one, state: 'error', error: { code: CHANGED_TWICE, reason, at: isoTime(clock.now()) } }
}

/** First the document that counts: it has the error `changed_twice` already, or the sidecar has seen it. */
function inOrder({ ours, theirs }: Conflict): readonly [Doc, Doc] {
  const isLater = isChangedTwice(theirs) || (isSeen(theirs) && !isSeen(ours) && !isChangedTwice(ours))
  return isLater ? [theirs, ours] : [ours, theirs]
}

const isSeen = ({ state }: Doc): boolean => SEEN.includes(String(state))

const requestsTheSame = (one: Doc, other: Doc, field: RequestedField): boolean =>
  isDeepStrictEqual(requestedIn(one, field), requestedIn(other, field))

/** The value of a field, with members normalised and sorted. */
function requestedIn(doc: Doc, field: RequestedField): unknown {
  const members = field === 'members' ? listOf(doc.members) : undefined
  return members ? membersOf({ members, owner: String(doc.owner) }) : doc[field]
}

/** Members on both lists, and members added to one since `base`. Undefined if an argument is no list. */
function mergeMembers(ours: unknown, theirs: unknown, base: unknown): readonly string[] | undefined {
  const [one, other, before] = [ours, theirs, base].map(listOf)
  if (!one || !other || !before) return undefined
  const has = (list: readonly string[], member: string) =>
    list.some((listed) => normaliseAddress(listed) === normaliseAddress(member))
  const kept = one.filter((member) => has(other, member) || !has(before, member))
  return [...kept, ...other.filter((member) => !has(one, member) && !has(before, member))]
}

/** Members on both lists. An address on only one list is left out: the other side may have removed it. */
function onBoth(one: unknown, other: unknown): { readonly members?: readonly string[] } {
  const members = mergeMembers(one, other, [...(listOf(one) ?? []), ...(listOf(other) ?? [])])
  return members ? { members } : {}
}

/** Undefined if `members` is no list of addresses. An absent list counts as empty. */
const listOf = (members: unknown = []): readonly string[] | undefined =>
  Array.isArray(members) && members.every((member) => typeof member === 'string') ? members : undefined

/** Cuts between characters: half a surrogate pair is invalid JSON. */
const beginningOf = (text: string, most: number): string => [...text].slice(0, most).join('')
