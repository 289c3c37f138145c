import { growingWait, type Random } from '../core/backoff.ts'
import { isoTime } from '../core/clock.ts'
import type { Failure } from '../core/errors.ts'
import { shortened } from '../core/failure.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { Machines, Timeout } from '../../ddocs/machine.ts'
import { isObject } from '../../ddocs/lib/document.ts'
import { docstateOf, endOf } from './classify.ts'
import { failedTries, failingSince, timesLost, type Attempt } from './attempt.ts'
import type { Claim, Docstate, Steps } from './types.ts'

/**
 * Pure functions that make every document the engine writes. They keep the user's fields and change only `state`,
 * `error` and `docstate`.
 */

/** `doc` with this `docstate`, or without one. */
export function withDocstate<D extends Doc>(doc: D, docstate: Docstate | undefined): D {
  if (docstate) return { ...doc, docstate }
  const { docstate: _old, ...fields } = doc as D & { docstate?: unknown }
  return fields as D
}

function sinceOf(docstate: Docstate | undefined): { readonly failing_since?: string } {
  const failing_since = failingSince(docstate)
  return failing_since === undefined ? {} : { failing_since }
}

/** The fields of `docstate` that an entry keeps over its attempts. */
function entryOf(attempt: Attempt): Docstate {
  const { before, entry } = attempt
  const [attempts, lost] = [failedTries(before), timesLost(before)]
  return {
    state: attempt.registration.state,
    entry,
    ...enteredInOf(attempt),
    ...(attempts > 0 && { attempts }),
    ...(lost > 0 && { lost }),
    ...sinceOf(before),
    ...(before?.failure && { failure: before.failure }),
    ...(attempt.done.length > 0 && { done: attempt.done }),
    ...stepsOf(attempt),
    ...(before?.timeout_at && { timeout_at: before.timeout_at }),
  }
}

const enteredInOf = ({ enteredIn, registration }: Attempt): { readonly entered_in?: string } =>
  enteredIn === registration.state ? {} : { entered_in: enteredIn }

const stepsOf = ({ steps }: Attempt): { readonly steps?: Steps } => (Object.keys(steps).length > 0 ? { steps } : {})

/** The document with the results of its handler's steps, otherwise unchanged. */
export function withSteps(attempt: Attempt): StoredDoc {
  const claim = docstateOf(attempt.doc)?.claim
  return withDocstate(attempt.doc, { ...entryOf(attempt), ...(claim && { claim }) })
}

export const claimed = (attempt: Attempt, claim: Claim): StoredDoc =>
  withDocstate(attempt.doc, { ...entryOf(attempt), claim })

/** The document without its claim: any worker may take it at once, or from `at` on (milliseconds since the epoch). */
export const released = (attempt: Attempt, at?: number): StoredDoc =>
  withDocstate(attempt.doc, { ...entryOf(attempt), ...(at !== undefined && { retry_at: isoTime(at) }) })

/** The handler's document. If it stays in the state, it is marked as handled, so no handler takes it again. */
export function saved(attempt: Attempt, next: Doc, machines: Machines, now: number): Doc {
  const { type, state, byMachine } = attempt.registration
  if (byMachine === 'rename') return renamed(attempt, next, machines, now)
  if (next.state === state) {
    const timeout = machines[type]?.[state]?.timeout
    const timeout_at = timeout && 'at' in timeout ? endAt(timeout, next, now) : attempt.before?.timeout_at
    return withDocstate(next, { state, entry: attempt.entry, handled: isoTime(now), ...(timeout_at && { timeout_at }) })
  }
  const timeout = machines[type]?.[String(next.state)]?.timeout
  const timeout_at = timeout && endAt(timeout, next, now)
  return withDocstate(next, timeout_at === undefined ? undefined : { state: String(next.state), timeout_at })
}

/** The document under the state's new name. Its entry continues: `docstate` is kept, except the claim. */
function renamed({ registration, before, enteredIn }: Attempt, next: Doc, machines: Machines, now: number): Doc {
  const state = String(next.state)
  const timeout = machines[registration.type]?.[state]?.timeout
  const timeout_at = timeout && (('afterMs' in timeout && before?.timeout_at) || endAt(timeout, next, now))
  const end = timeout_at ? { timeout_at } : {}
  if (!before) return withDocstate(next, timeout_at ? { state, ...end } : undefined)
  const { claim: _claim, timeout_at: _end, ...kept } = before
  return withDocstate(next, { ...kept, state, ...(kept.entry && { entered_in: enteredIn }), ...end })
}

function endAt(timeout: Timeout, doc: Doc, now: number): string | undefined {
  const end = endOf(timeout, doc, now)
  return end === undefined ? undefined : isoTime(end)
}

/** The document in `state: "error"`, final until an operator retries it. */
export function errored(attempt: Attempt, failure: Failure, now: number): StoredDoc {
  const attempts = failedTries(attempt.before) + 1
  const error = record(attempt, failure, now)
  const { before, entry, registration, done } = attempt
  const known = { ...enteredInOf(attempt), ...sinceOf(before), ...(done.length > 0 && { done }), ...stepsOf(attempt) }
  const docstate = { state: 'error', failed_in: registration.state, entry, attempts, ...known }
  return withDocstate({ ...attempt.doc, state: 'error', error }, docstate)
}

/** The document after a failed attempt: with the time of the next, or in `error` after the last. */
export function failed(
  attempt: Attempt,
  failure: Failure,
  now: number,
  random: Random,
  again?: Date | number,
): StoredDoc {
  const { attempts: allowed, backoff } = attempt.registration.options
  const attempts = failedTries(attempt.before) + 1
  if (attempts >= allowed) return errored(attempt, failure, now)
  return withDocstate(attempt.doc, {
    ...entryOf(attempt),
    attempts,
    failing_since: failingSince(attempt.before) ?? isoTime(now),
    failure: record(attempt, failure, now),
    retry_at:
      again instanceof Date ? again.toISOString() : isoTime(now + (again ?? growingWait(backoff, attempts, random))),
  })
}

/** The failure shortened and well-formed, so that CouchDB accepts it. */
const record = (attempt: Attempt, failure: Failure, now: number) => ({
  ...shortened(failure),
  at: isoTime(now),
  ...versionOf(attempt),
})

/** The version of the handler, if it has one. */
export function versionOf({ registration }: Attempt): { readonly version?: string } {
  const { version } = registration.options
  return version === undefined ? {} : { version }
}

/** The parked document: it is unknown whether the effect happened, so an operator decides. */
export const parked = (attempt: Attempt, reason: string, now: number): StoredDoc =>
  withDocstate(attempt.doc, {
    ...entryOf(attempt),
    parked: { at: isoTime(now), reason: shortened({ code: '', reason }).reason },
  })

/**
 * Rebases a handler's document onto the current one. A claim renewal may have met an edit by another writer, which the
 * handler has not seen.
 */
export const uponNow = ({ doc, given }: Attempt, next: Doc): Doc =>
  given === undefined || given === doc ? next : rebase(given, next, doc)

/** Rebases each attachment separately: an attachment that another writer added stays. */
function rebaseFields(base: unknown, ours: unknown, theirs: unknown): Record<string, unknown> {
  const [before, after, merged] = [base, ours, theirs].map((fields) => ({ ...(isObject(fields) ? fields : {}) }))
  for (const name of Object.keys({ ...before, ...after })) {
    if (sameJson(before![name], after![name])) continue
    if (after![name] === undefined) delete merged![name]
    else merged![name] = after![name]
  }
  return merged!
}

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** CouchDB's own fields that a handler may change. */
const CARRIED = ['_attachments', '_deleted']

/**
 * Applies the changes between `base` and `ours` to `theirs`, the current document. `docstate` comes from `ours`: the
 * worker that rebases still holds the document.
 */
export function rebase(base: Doc, ours: Doc, theirs: StoredDoc): Doc {
  const merged: Record<string, unknown> = { ...theirs }
  for (const field of new Set([...Object.keys(base), ...Object.keys(ours)])) {
    if (field.startsWith('_') && !CARRIED.includes(field)) continue
    if (sameJson(base[field], ours[field])) continue
    if (field === '_attachments') merged[field] = rebaseFields(base[field], ours[field], theirs[field])
    else if (ours[field] === undefined) delete merged[field]
    else merged[field] = ours[field]
  }
  return withDocstate(merged as Doc, ours.docstate as Docstate | undefined)
}
