import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { createAssess, docstateOf, type DispatchTable } from './assess.ts'
import { failedTries } from './flight.ts'

/**
 * Tells about one document, in sentences for people: which handler takes it, who holds it, what happened, and what
 * happens next and when. Reads the document only; asks no worker.
 */
export async function explain(database: Database, table: DispatchTable, clock: Clock, id: string): Promise<string[]> {
  const doc = await database.find(id, { conflicts: true })
  if (!doc) return [`${database.name} has no document ${id}.`]
  const { type, state } = doc
  if (typeof type !== 'string' || typeof state !== 'string') {
    return [`${id} has no type and state that are strings, so no handler can take it.`]
  }
  const handler = table.registrations.find((entry) => entry.type === type && entry.state === state)
  const timeout = table.machines[type]?.[state]?.timeout
  const lines = [`${id} is a ${type} in state ${state}, revision ${doc._rev}.`]
  if (handler) lines.push(`Its handler is ${handler.mode}, and tries up to ${handler.options.attempts} times.`)
  else
    lines.push(
      `No handler takes a ${type} in this state${timeout ? '; only its time runs.' : '. Nothing happens by itself.'}`,
    )
  lines.push(...happened(doc), ...next(doc, table, clock))
  if (doc._conflicts) lines.push(`It has conflicting revisions: ${doc._conflicts.join(', ')}.`)
  return lines
}

function happened(doc: StoredDoc): string[] {
  const docstate = docstateOf(doc)
  const lines: string[] = []
  const tries = failedTries(docstate)
  if (tries > 0) lines.push(`${tries} ${tries === 1 ? 'try' : 'tries'} failed.`)
  if (docstate?.failure) {
    lines.push(`The last failure, at ${docstate.failure.at}: ${docstate.failure.code}: ${docstate.failure.reason}`)
  }
  if (docstate?.failed_in) {
    const { code, reason, at } = (doc.error ?? {}) as { code?: string; reason?: string; at?: string }
    lines.push(`It failed in state ${docstate.failed_in}, at ${at}: ${code}: ${reason}`)
  }
  if (docstate?.handled) lines.push(`Its handler was done with it at ${docstate.handled}, and left it in this state.`)
  return lines
}

function next(doc: StoredDoc, table: DispatchTable, clock: Clock): string[] {
  const docstate = docstateOf(doc)
  if (docstate?.parked) {
    return [
      `It is parked since ${docstate.parked.at}: ${docstate.parked.reason}`,
      'Find out whether its effect happened; then "couchdb-sidecar retry" runs it again, or write its next state.',
    ]
  }
  if (docstate?.failed_in) return ['"couchdb-sidecar retry" brings it back to be tried again.']
  const assessment = createAssess(table)(doc, clock.now())
  switch (assessment.kind) {
    case 'ignore':
      return []
    case 'ready':
      return ['It is ready: a running sidecar takes it at once.']
    case 'wait': {
      const what = docstate?.retry_at ? 'The next try is due' : 'Its time in this state ends'
      return [`${what} at ${new Date(assessment.until).toISOString()}.`]
    }
    case 'untimed':
      return ['Its time in this state begins when a sidecar sees it.']
    case 'claimed': {
      const { worker, at, lease_ms } = assessment.claim
      return [
        `The worker ${worker} holds it, renewed at ${at}.`,
        `If ${worker} gives no sign of life for ${lease_ms / 1000} s, another one takes over: it ${
          assessment.registration.options.onLost === 'park' ? 'parks it' : 'tries again'
        }.`,
      ]
    }
  }
}
