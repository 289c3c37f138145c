import type { Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/errors.ts'
import { docstateOf } from '../classify.ts'
import { withDocstate } from '../documents.ts'
import { pages } from '../finding/pages.ts'
import type { StateCount } from './status.ts'

export type Retried =
  | { readonly kind: 'retried'; readonly id: string; readonly state: string }
  | { readonly kind: 'not-found'; readonly id: string }
  /** It neither failed nor waits. */
  | { readonly kind: 'nothing-to-retry'; readonly id: string; readonly state: unknown }
  /** Another writer changed it at the same time. */
  | { readonly kind: 'changed'; readonly id: string }

/**
 * Brings a document that is parked, waits for its next try, or ended in `error`, back to where its handler takes it
 * now. The entry stays the same, and with it `ctx.key`, so that a provider can tell a repetition.
 */
export async function retryDocument(database: Database, id: string, signal?: AbortSignal): Promise<Retried> {
  const doc = await database.find(id, {}, { signal })
  if (!doc) return { kind: 'not-found', id }
  const again = broughtBack(doc)
  if (!again) return { kind: 'nothing-to-retry', id, state: doc.state }
  try {
    await database.put(again, { signal })
  } catch (thrown) {
    if (isCouchError(thrown, 'conflict')) return { kind: 'changed', id }
    throw thrown
  }
  return { kind: 'retried', id, state: String(again.state) }
}

export interface RetryOptions {
  readonly database: Database
  /** Of which type, and in which state; `countStates` tells. */
  readonly counts: readonly StateCount[]
  readonly signal?: AbortSignal | undefined
}

/**
 * As `retryDocument` for every document that is parked or ended in `error` by a handler. What was changed at
 * the same time is tried once more at the end.
 */
export async function* retryAll({ database, counts, signal }: RetryOptions): AsyncGenerator<Retried> {
  const changed: string[] = []
  for (const { type, state, status } of counts) {
    if (status !== 'parked' && state !== 'error') continue
    const range = { startkey: [type, state, status], endkey: [type, state, status, {}] }
    for await (const rows of pages(database, range, signal)) {
      for (const { id } of rows) {
        const retried = await retryDocument(database, id, signal)
        if (retried.kind === 'retried') yield retried
        else if (retried.kind === 'changed') changed.push(id)
      }
    }
  }
  for (const id of changed) {
    const retried = await retryDocument(database, id, signal)
    yield retried.kind === 'retried' ? retried : { kind: 'changed', id }
  }
}

function broughtBack(doc: StoredDoc): Doc | undefined {
  const docstate = docstateOf(doc)
  if (!docstate) return undefined
  const kept = {
    ...(docstate.entry !== undefined && { entry: docstate.entry }),
    ...(docstate.done && { done: docstate.done }),
    ...(docstate.steps && { steps: docstate.steps }),
  }
  if (docstate.failed_in !== undefined) {
    const { error: _error, ...rest } = doc
    return withDocstate({ ...rest, _id: doc._id, state: docstate.failed_in }, { state: docstate.failed_in, ...kept })
  }
  if (docstate.parked) return withDocstate(doc, { state: docstate.state, ...kept }) // its time begins anew
  if (docstate.retry_at === undefined) return undefined
  const { timeout_at } = docstate
  return withDocstate(doc, { state: docstate.state, ...kept, ...(timeout_at && { timeout_at }) })
}
