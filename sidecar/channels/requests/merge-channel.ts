import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../core/clock.ts'
import type { Doc } from '../../couch/documents.ts'
import { mergeFields, type Conflict, type Resolver } from '../../docstate/conflicts/merge.ts'
import { isChangedTwice } from '../documents.ts'
import { closeOf, isEnding } from '../ending.ts'
import { withoutBase } from './merge-unknown.ts'
import { isSeen, mergeMembers, REQUESTED } from './request.ts'

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

/** Whoever closes a channel means it, whatever else was done to it meanwhile. Undefined if nobody did. */
function ending({ ours, theirs, base }: Conflict): Doc | undefined {
  const [first, second] = [ours, theirs].filter(isEnding)
  if (!first) return undefined
  if (!second) return base && isEnding(base) ? [ours, theirs].find((doc) => !isEnding(doc)) : first // made again
  const ended = second.state === 'closed' ? second : first
  return ended.state === 'closed' ? ended : { ...ended, close: closeOf(first, second) }
}

/**
 * What the owner has changed while the sidecar wrote the document, that has not seen: so it is asked for anew. (It would
 * not be if a request that was seen stayed `new`: nobody could tell the two.) Undefined where nobody knows what was changed, or
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
