import { isObject, quote } from '../../ddocs/lib/document.ts'
import type { Failure } from '../core/errors.ts'
import type { Doc } from '../couch/documents.ts'
import type { Machines } from '../../ddocs/machine.ts'
import type { Registration } from './types.ts'

/** What is wrong with a handler's document: what JavaScript lets through and the types do not. */
export function checkNext(doc: unknown, { type, state }: Registration, machines: Machines): Failure | undefined {
  const next = doc as Partial<Doc> | null
  if (typeof next !== 'object' || next === null || typeof next.state !== 'string' || next.type !== type) {
    const wanted = `a document of type ${type} with a state`
    return bad(`the handler of ${type} in ${state} returned ${described(doc)}; expected ${wanted}`)
  }
  const declared = machines[type]
  if (!declared || next.state === state || declared[state]?.next?.[next.state] === 'sidecar') return undefined
  return bad(`the machine of ${type} has no transition from ${state} to ${next.state} for the sidecar`)
}

const described = (doc: unknown): string =>
  isObject(doc) ? `one of type ${quote(doc.type)} in state ${quote(doc.state)}` : quote(doc)

const bad = (reason: string): Failure => ({ code: 'bad_result', reason })
