import type { Status } from '../../../ddocs/lib/status.ts'
import { isoTime } from '../../core/clock.ts'
import { shortened } from '../../core/failure.ts'
import type { Database } from '../../couch/database.ts'
import type { BulkRow, Doc, StoredDoc } from '../../couch/documents.ts'
import { isCouchError, type CouchErrorCode } from '../../couch/couch-errors.ts'
import { writtenFrom } from '../../couch/written.ts'
import { docstateOf } from '../classify.ts'
import { withDocstate } from '../outcome-documents.ts'
import type { Docstate } from '../types.ts'
import { findDocuments, type FindOptions } from './find.ts'
import { standingOf } from './standing.ts'

/** Returns the changed document, or undefined if nothing is to be done. */
export type Action = (doc: StoredDoc) => Doc | undefined

export type ActionResult =
  /** The document is in this state now. */
  | { readonly kind: 'done'; readonly id: string; readonly state: string }
  | { readonly kind: 'not-found'; readonly id: string }
  | { readonly kind: 'nothing-to-do'; readonly id: string; readonly state: unknown }
  /** Another writer changed the document at the same time. */
  | { readonly kind: 'changed'; readonly id: string }
  /** A `validate_doc_update` refused the document. */
  | { readonly kind: 'refused'; readonly id: string; readonly code: CouchErrorCode; readonly reason: string }

/**
 * Brings a document back to its handler now: one that is parked, waits for its next try, or ended in `error`. The entry
 * stays the same, and so does `ctx.key`: a provider can detect a repetition.
 */
export const retry: Action = (doc) => {
  const docstate = docstateOf(doc)
  if (!docstate) return undefined
  const kept = keptOf(docstate)
  if (docstate.failed_in !== undefined) {
    const { error: _error, ...rest } = doc
    return withDocstate({ ...rest, _id: doc._id, state: docstate.failed_in }, { state: docstate.failed_in, ...kept })
  }
  if (docstate.parked) return withDocstate(doc, { state: docstate.state, ...kept }) // its timeout begins again
  if (docstate.retry_at === undefined) return undefined
  const { timeout_at } = docstate
  return withDocstate(doc, { state: docstate.state, ...kept, ...(timeout_at && { timeout_at }) })
}

/** Like `retry`, and records the operator. @param now milliseconds since the epoch */
export const retryBy =
  (by: string, now: number): Action =>
  (doc) => {
    const next = retry(doc)
    return next && withDocstate(next, { ...docstateOf(next)!, retried: { at: isoTime(now), by } })
  }

export interface DiscardOptions {
  /** Name of the operator. */
  readonly by: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Statuses of documents that may be discarded. */
  readonly among: readonly Status[]
}

/**
 * Ends the work on a document: it moves to `error`, or stays in it, marked as discarded. `undoDiscard` reverts that,
 * and `retry` brings the document to its handler. A document that a worker holds is left alone.
 */
export const discard =
  ({ by, now, among }: DiscardOptions): Action =>
  (doc) => {
    const { status, code, reason } = standingOf(doc)
    if (!among.includes(status) || status === 'claimed' || status === 'discarded') return undefined
    const docstate = docstateOf(doc)
    const discarded = { at: isoTime(now), by }
    if (docstate?.failed_in !== undefined) return withDocstate(doc, { ...docstate, discarded })
    const state = String(doc.state)
    const last = reason === undefined ? '' : `; before: ${code === undefined ? '' : `${code}: `}${reason}`
    const error = { ...shortened({ code: 'discarded', reason: `discarded by ${by}${last}` }), at: discarded.at }
    const kept = { entry: doc._rev, ...keptOf(docstate ?? { state }) }
    const before = Object.fromEntries(Object.entries(docstate ?? {}).filter(([field]) => !(field in kept)))
    return withDocstate(
      { ...doc, state: 'error', error },
      { state: 'error', failed_in: state, ...kept, discarded: { ...discarded, before } },
    )
  }

export interface UndoOptions {
  /** Name of the operator. */
  readonly by: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** The discard to undo; default any. */
  readonly of?: { readonly at: string; readonly by: string } | undefined
}

/** Undoes a discard: the document is as it was before. */
export const undoDiscard =
  ({ by, now, of }: UndoOptions): Action =>
  (doc) => {
    const docstate = docstateOf(doc)
    if (!docstate?.discarded || docstate.failed_in === undefined) return undefined
    const { discarded, ...rest } = docstate
    if (of && (discarded.at !== of.at || discarded.by !== of.by)) return undefined
    const request = { at: isoTime(now), by }
    if (!discarded.before) return withDocstate(doc, { ...rest, asked: request })
    const { error: _error, ...fields } = doc
    const state = docstate.failed_in
    return withDocstate(
      { ...fields, _id: doc._id, state },
      { state, ...keptOf(docstate), ...discarded.before, asked: request },
    )
  }

/** Fields of an entry that stay when it is retried or discarded. */
const keptOf = ({ entry, entered_in, done, steps }: Docstate): Partial<Docstate> => ({
  ...(entry !== undefined && { entry }),
  ...(entered_in !== undefined && { entered_in }),
  ...(done && { done }),
  ...(steps && { steps }),
})

/** Applies the action to one document. Throws `CouchError`. */
export async function actOnOne(
  database: Database,
  id: string,
  action: Action,
  signal?: AbortSignal,
): Promise<ActionResult> {
  const doc = await database.find(id, {}, { signal })
  if (!doc) return { kind: 'not-found', id }
  const next = action(doc)
  if (!next) return { kind: 'nothing-to-do', id, state: doc.state }
  try {
    await database.put(next, { signal })
  } catch (thrown) {
    if (isCouchError(thrown, 'conflict')) return { kind: 'changed', id }
    throw thrown
  }
  return { kind: 'done', id, state: String(next.state) }
}

export interface ActOnAllOptions extends FindOptions {
  readonly action: Action
  /** Maximum number of documents. Default all. */
  readonly limit?: number
}

/**
 * Applies the action to all documents of the filter, written together. A document that changed at the same time is
 * tried once more at the end. If interrupted, call it again: it goes on. Throws `CouchError`.
 */
export async function* actOnAll({
  action,
  limit = Infinity,
  ...options
}: ActOnAllOptions): AsyncGenerator<ActionResult[]> {
  const { database, signal } = options
  const changed: string[] = []
  let left = limit
  for await (const found of findDocuments(options)) {
    const nexts = found.flatMap(({ doc }) => action(doc) ?? []).slice(0, left)
    if (nexts.length === 0) continue
    left -= nexts.length
    const results = await writeAll(database, nexts, signal)
    changed.push(...results.flatMap(({ kind, id }) => (kind === 'changed' ? [id] : [])))
    yield results.filter(({ kind }) => kind !== 'changed')
    if (left <= 0) break
  }
  for (const id of changed) {
    const result = await actOnOne(database, id, action, signal)
    yield [result.kind === 'done' ? result : { kind: 'changed', id }]
  }
}

/** Maximum characters of one request, unless one document alone is larger. */
const A_REQUEST = 4_000_000

async function writeAll(database: Database, docs: readonly Doc[], signal?: AbortSignal): Promise<ActionResult[]> {
  const states = new Map(docs.map(({ _id, state }) => [_id, String(state)]))
  const results: ActionResult[] = []
  for (let rest = docs.map((doc) => JSON.stringify(doc)); rest.length > 0;) {
    let size = 0
    const first = rest.findIndex((text) => (size += text.length) > A_REQUEST)
    const some = rest.slice(0, first < 0 ? rest.length : Math.max(1, first))
    rest = rest.slice(some.length)
    for (const row of await database.bulk(some, { signal })) results.push(resultOf(row, states))
  }
  return results
}

function resultOf(row: BulkRow, states: ReadonlyMap<string, string>): ActionResult {
  const { id } = row
  const written = writtenFrom(row)
  if (written.kind === 'conflict') return { kind: 'changed', id }
  if (written.kind === 'refused') return { kind: 'refused', id, code: written.code, reason: written.reason }
  return { kind: 'done', id, state: states.get(id)! }
}
