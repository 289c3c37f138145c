/**
 * Two documents of one channel, of which nobody knows what was changed since they were one: CouchDB has compacted that away.
 */
import { isoTime, type Clock } from '../../core/clock.ts'
import type { Doc } from '../../couch/documents.ts'
import type { Conflict } from '../../docstate/conflicts/merge.ts'
import { CHANGED_TWICE, isChangedTwice } from '../documents.ts'
import { isSeen, listOf, mergeMembers, WISHES, wishesTheSame } from './wish.ts'

/** Characters of a wish that is told, and of all that is told. */
const [SHOWN, MOST_SHOWN] = [300, 2000]

/**
 * What the sidecar has seen counts, so that a member who was removed does not come back; and the owner is told what else was
 * wished, to say what is meant. Two that never were one (made on two devices) are two wishes for the same channel: who
 * comes first has it.
 */
export function withoutBase(conflict: Conflict, clock: Pick<Clock, 'now'>): Doc {
  const [one, other] = inOrder(conflict)
  if (conflict.baseRev === undefined || other.state !== 'new') return one
  const { base } = conflict
  const lost = WISHES.filter(
    (field) => !wishesTheSame(other, one, field) && !(base && wishesTheSame(other, base, field)),
  )
  if (lost.length === 0) return one
  if (!isSeen(one)) return { ...one, ...onBoth(one.members, other.members) } // the sidecar sees them now
  const told = lost.map((field) => `${field}: ${beginningOf(JSON.stringify(other[field] ?? null), SHOWN)}`).join('; ')
  const before = isChangedTwice(one)
    ? one.error.reason
    : 'changed twice, and CouchDB has no more what was before; write again what is meant. Others had'
  const reason = beginningOf(`${before} ${told}`, MOST_SHOWN)
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
