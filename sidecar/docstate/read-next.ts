import { isObject, quote } from '../../ddocs/lib/document.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { jsonOf } from '../core/copy.ts'
import { Reject } from '../core/errors.ts'
import { failureOf } from '../core/failure.ts'
import type { Doc } from '../couch/documents.ts'
import type { Registration } from './types.ts'

/**
 * Converts a handler's result to the document that CouchDB stores, and checks it, since JavaScript may break the types.
 * Getters, proxies and `toJSON` are evaluated once; a later change has no effect. Throws `Reject`.
 */
export function readNext(given: unknown, registration: Registration, machines: Machines): Doc & { state: string } {
  const { type, state, byMachine } = registration
  const who = `the handler of ${type} in ${state}`
  const next = plain(given, who)
  if (!isObject(next) || typeof next.state !== 'string' || next.type !== type) {
    throw bad(`${who} returned ${described(next)}; expected a document of type ${type} with a state`)
  }
  const declared = machines[type]
  if (!declared || byMachine || next.state === state) return next as Doc & { state: string }
  if (declared[state]?.next?.[next.state] !== 'sidecar') {
    throw bad(`the machine of ${type} has no transition from ${state} to ${next.state} for the sidecar`)
  }
  return next as Doc & { state: string }
}

/** Converts another document that a handler writes. Throws `Reject`. */
export function readOther(given: unknown, { type, state }: Registration): Doc {
  return plain(given, `the handler of ${type} in ${state}`) as Doc
}

function plain(given: unknown, who: string): unknown {
  try {
    return jsonOf(given)
  } catch (thrown) {
    throw new Reject('save_refused', `${who} returned a value without a JSON form: ${failureOf(thrown).reason}`)
  }
}

const described = (doc: unknown): string =>
  isObject(doc) ? `one of type ${quote(doc.type)} in state ${quote(doc.state)}` : quote(doc)

const bad = (reason: string) => new Reject('bad_result', reason)
