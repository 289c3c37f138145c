import { isDeepStrictEqual } from 'node:util'
import { type Clock, isoTime } from '../../core/clock.ts'
import type { Doc } from '../../couch/documents.ts'
import { mergeFields, type Conflict, type Resolver } from '../../docstate/conflicts/merge.ts'
import { isChangedTwice, CHANGED_TWICE } from '../channel-documents.ts'
import { closeOf, isEnding } from '../ending.ts'
import { isSeen, mergeMembers, REQUESTED, listOf, requestsTheSame } from './request.ts'
import { isObject } from '../../../ddocs/lib/document.ts'
import { normaliseName } from '../channel-names.ts'

/**
 * Two documents of one channel: of the later life, if one of them is of an earlier one; closed, if one of them says so; else
 * with the requests of both.
 */
export const mergeChannel =
  (clock: Pick<Clock, 'now'>): Resolver =>
  (conflict) =>
    ofLaterLife(conflict) ?? ending(conflict) ?? withRequests(conflict) ?? withoutBase(conflict, clock)

/** A channel that was closed and made again has another database. What is done to the one before, late, is not done to it. */
function ofLaterLife({ ours, theirs, base }: Conflict): Doc | undefined {
  const [one, other] = [ours.database, theirs.database]
  if (one === undefined || other === undefined || one === other) return undefined
  if (base?.database === one) return theirs
  if (base?.database === other) return ours
  // Which is later, the record knows, and the sidecar after it: what it wrote counts, and is looked at again.
  const written = [ours, theirs].filter((doc) => isSeen(doc) || doc.state === 'closed')
  const counting = written.find((doc) => !isEnding(doc)) ?? written[0]
  const isAsked = counting?.state === 'accepted' || counting?.state === 'ready'
  return counting && isAsked ? { ...counting, state: 'new' } : counting
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
 * What the owner has changed while the sidecar wrote the document, that has not seen: so it is asked for anew. (It would
 * not be if a request that was seen stayed `new`: the two would look alike.) Undefined where it is unknown what was changed, or
 * where the owner is to say it anyway.
 */
function withRequests(conflict: Conflict): Doc | undefined {
  const { ours, theirs, base } = conflict
  if (!base || isChangedTwice(ours) || isChangedTwice(theirs)) return undefined
  const members = mergeMembers(ours.members, theirs.members, base.members)
  const merged = { ...mergeFields(conflict), ...(members && { members }) } as Doc
  const isChanged = REQUESTED.some((field) => !isDeepStrictEqual(merged[field], ours[field]))
  if (!isChanged || !isSeen(merged)) return merged
  const { error: _error, ...asked } = merged as Doc & { error?: unknown }
  return { ...asked, state: 'new' }
}

/*
 * Two documents of one channel, of which it is unknown what was changed since they were one: CouchDB has compacted that
 * away, or they never were.
 */

/** Characters of a request that is told, and of all that is told. */
const [SHOWN, MOST_SHOWN] = [300, 2000]

/**
 * What the sidecar has seen counts, so that a member who was removed does not come back; and the owner is told what else was
 * requested, to say what is meant.
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
  if (!isSeen(one)) return { ...one, ...onBoth(one.members, other.members) } // the sidecar sees them now
  const why = 'changed twice, and CouchDB has no more what was before; write again what is meant. Others had'
  return changedTwice(one, why, other, lost, clock)
}

/**
 * Two devices have each made this channel, and neither knew of the other: nothing was removed by either, so all that both
 * request holds. Of another name it is another channel, of which the owner is told: one document cannot be both.
 */
function madeApart(one: Doc, other: Doc, clock: Pick<Clock, 'now'>): Doc {
  const [name, otherName] = [one, other].map(({ name }) => normaliseName(String(name)))
  if (name !== otherName) {
    const why = 'made twice with this _id, by different names; make the other one again with another _id. It had'
    return changedTwice(one, why, other, ['name', ...REQUESTED], clock)
  }
  const members = mergeMembers(one.members, other.members, [])
  const data = { ...(isObject(other.data) && other.data), ...(isObject(one.data) && one.data) }
  const both = { ...one, ...(members && { members }), ...(Object.keys(data).length > 0 && { data }) }
  if (isChangedTwice(one) || REQUESTED.every((field) => requestsTheSame(both, one, field))) return both
  const { error: _error, ...asked } = both as Doc & { error?: unknown }
  return { ...asked, state: 'new' }
}

/** What counts, in an error that tells what else was requested. */
function changedTwice(one: Doc, why: string, other: Doc, lost: readonly string[], clock: Pick<Clock, 'now'>): Doc {
  const told = lost.map((field) => `${field}: ${beginningOf(JSON.stringify(other[field] ?? null), SHOWN)}`).join('; ')
  const reason = beginningOf(`${isChangedTwice(one) ? one.error.reason : why} ${told}`, MOST_SHOWN)
  return { ...one, state: 'error', error: { code: CHANGED_TWICE, reason, at: isoTime(clock.now()) } }
}

/** First the one that counts: of which the owner was told already, or that was seen. */
function inOrder({ ours, theirs }: Conflict): readonly [Doc, Doc] {
  const isLater = isChangedTwice(theirs) || (isSeen(theirs) && !isSeen(ours) && !isChangedTwice(ours))
  return isLater ? [theirs, ours] : [ours, theirs]
}

/** An address on one list only was removed by the one side, or added by the other. */
function onBoth(one: unknown, other: unknown): { readonly members?: readonly string[] } {
  const members = mergeMembers(one, other, [...(listOf(one) ?? []), ...(listOf(other) ?? [])])
  return members ? { members } : {}
}

/** Half a character would be no JSON. */
const beginningOf = (text: string, most: number): string => [...text].slice(0, most).join('')
