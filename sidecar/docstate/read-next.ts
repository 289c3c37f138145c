import { isObject, quote } from '../../ddocs/lib/document.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { jsonOf } from '../core/copy.ts'
import { Reject } from '../core/errors.ts'
import { failureOf } from '../core/failure.ts'
import type { Doc } from '../couch/documents.ts'
import type { Registration } from './types.ts'

/**
 * The document that a handler gives, as it will be in CouchDB. What JavaScript lets through and the types do not is found
 * here, once: getters, proxies and a `toJSON` have had their say, and a later change has no effect. Throws `Reject`.
 */
export function readNext(given: unknown, registration: Registration, machines: Machines): Doc & { state: string } {
  const { type, state, byMachine } = registration
  const who = `the handler of ${type} in ${state}`
  const next = plain(given, who)
  if (!isObject(next) || typeof next.state !== 'string' || next.type !== type) {
    throw bad(`${who} gave ${described(next)}; expected a document of type ${type} with a state`)
  }
  const declared = machines[type]
  if (!declared || byMachine || next.state === state) return next as Doc & { state: string }
  if (declared[state]?.next?.[next.state] !== 'sidecar') {
    throw bad(`the machine of ${type} has no transition from ${state} to ${next.state} for the sidecar`)
  }
  return next as Doc & { state: string }
}

/** Another document of the database. Throws `Reject`. */
export function readOther(given: unknown, { type, state }: Registration): Doc {
  return plain(given, `the handler of ${type} in ${state}`) as Doc
}

function plain(given: unknown, who: string): unknown {
  try {
    return jsonOf(given)
  } catch (thrown) {
    throw new Reject('save_refused', `${who} gave what has no JSON: ${failureOf(thrown).reason}`)
  }
}

const described = (doc: unknown): string =>
  isObject(doc) ? `one of type ${quote(doc.type)} in state ${quote(doc.state)}` : quote(doc)

const bad = (reason: string) => new Reject('bad_result', reason)
