/**
 * Two documents of one channel, of which it is unknown what was changed since they were one: CouchDB has compacted that
 * away, or they never were.
 */
import { isoTime, type Clock } from '../../core/clock.ts'
import { isObject } from '../../../ddocs/lib/document.ts'
import type { Doc } from '../../couch/documents.ts'
import type { Conflict } from '../../docstate/conflicts/merge.ts'
import { CHANGED_TWICE, isChangedTwice } from '../documents.ts'
import { normaliseName } from '../names.ts'
import { isSeen, listOf, mergeMembers, REQUESTED, requestsTheSame } from './request.ts'

/** Characters of a request that is told, and of all that is told. */
const [SHOWN, MOST_SHOWN] = [300, 2000]

/**
 * What the sidecar has seen counts, so that a member who was removed does not come back; and the owner is told what else was
 * requested, to say what is meant.
 */
export function withoutBase(conflict: Conflict, clock: Pick<Clock, 'now'>): Doc {
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

/** Whoever is on one list only was removed by the one, or added by the other. */
function onBoth(one: unknown, other: unknown): { readonly members?: readonly string[] } {
  const members = mergeMembers(one, other, [...(listOf(one) ?? []), ...(listOf(other) ?? [])])
  return members ? { members } : {}
}

/** Half a character would be no JSON. */
const beginningOf = (text: string, most: number): string => [...text].slice(0, most).join('')
