import { isDeepStrictEqual } from 'node:util'
import type { Doc } from '../../couch/documents.ts'
import { docstateOf, isClaim } from '../classify.ts'
import { effectsDone } from '../attempt.ts'
import type { Conflict } from './merge.ts'
import type { Docstate } from '../types.ts'

/**
 * What the engine knows of the entry, where two branches are made one in this state. Apart from whose fields count: the
 * branch with more edits may have kept what was true long ago, and what it does not know of would be run again.
 */
export function chooseDocstate({ ours, theirs, base }: Conflict, state: unknown): Docstate | undefined {
  const [a, b, before] = [ours, theirs, base].map((doc) => (doc?.state === state ? entryIn(doc) : undefined))
  if (ours.state !== theirs.state) return a ?? b
  const [aKept, bKept] = [a, b].map((one) => isDeepStrictEqual(one, before))
  const chosen = aKept !== bKept ? (aKept ? b : a) : rankOf(b) > rankOf(a) ? b : a
  return withEffects(chosen, a === chosen ? b : a)
}

/** `undefined` also for a field that says nothing but the state, and what was merged. */
function entryIn(doc: Doc | undefined): Docstate | undefined {
  const { merges: _, ...entry } = { ...(doc && docstateOf(doc)) } as Partial<Docstate>
  return Object.keys(entry).some((key) => key !== 'state') ? (entry as Docstate) : undefined
}

/** The further on, the more. What is in doubt goes before what would be tried again. */
function rankOf(entry: Docstate | undefined): number {
  if (!entry) return 0
  if (entry.handled) return 5
  if (entry.parked) return 4
  if (isClaim(entry.claim) && entry.claim.begun !== false) return 3
  return entry.failure || entry.retry_at ? 2 : 1
}

/** What was seen to happen on either branch is not repeated. */
function withEffects(chosen: Docstate | undefined, other: Docstate | undefined): Docstate | undefined {
  if (!chosen || chosen.entry !== other?.entry) return chosen
  const done = [...new Set([...effectsDone(chosen), ...effectsDone(other)])]
  return done.length > 0 ? { ...chosen, done } : chosen
}
