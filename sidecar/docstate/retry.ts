import type { Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { docstateOf } from './assess.ts'
import { withDocstate } from './documents.ts'
import { pages } from './pages.ts'
import { countStates } from './status.ts'

export type Retried =
  | { readonly kind: 'retried'; readonly id: string; readonly state: string }
  | { readonly kind: 'not-found'; readonly id: string }
  /** It neither failed nor waits. */
  | { readonly kind: 'nothing-to-retry'; readonly id: string; readonly state: unknown }

/**
 * Brings a document that is parked, waits for its next try, or ended in `error`, back to where its handler takes it
 * now. The entry stays the same, and with it `ctx.key`, so that a provider can tell a repetition.
 */
export async function retryDocument(database: Database, id: string): Promise<Retried> {
  const doc = await database.find(id)
  if (!doc) return { kind: 'not-found', id }
  const again = broughtBack(doc)
  if (!again) return { kind: 'nothing-to-retry', id, state: doc.state }
  await database.put(again)
  return { kind: 'retried', id, state: String(again.state) }
}

/** As `retryDocument` for every document that is parked or ended in `error` by a handler, of one type or of all. */
export async function* retryAll(database: Database, only?: string): AsyncGenerator<Retried> {
  for (const { type, state, status } of await countStates(database)) {
    const stuck = status === 'parked' || state === 'error'
    if (!stuck || (only !== undefined && type !== only)) continue
    const range = { startkey: [type, state, status], endkey: [type, state, status, {}] }
    for await (const ids of pages(database, range)) {
      for (const id of ids) {
        const retried = await retryDocument(database, id)
        if (retried.kind === 'retried') yield retried
      }
    }
  }
}

function broughtBack(doc: StoredDoc): Doc | undefined {
  const docstate = docstateOf(doc)
  if (!docstate) return undefined
  const kept = {
    ...(docstate.entry !== undefined && { entry: docstate.entry }),
    ...(docstate.done && { done: docstate.done }),
  }
  if (docstate.failed_in !== undefined) {
    const { error: _error, ...rest } = doc
    return withDocstate({ ...rest, _id: doc._id, state: docstate.failed_in }, { state: docstate.failed_in, ...kept })
  }
  if (!docstate.parked && docstate.retry_at === undefined) return undefined
  return withDocstate(doc, { state: docstate.state, ...kept })
}
