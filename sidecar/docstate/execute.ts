import { failureOf, Reject } from '../core/errors.ts'
import type { Doc } from '../couch/documents.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { ClaimLost } from './claims.ts'
import { createRun, type ContextOptions } from './context.ts'
import type { Flight } from './flight.ts'
import type { Outcome } from './types.ts'

export type Execute = (flight: Flight) => Promise<Outcome>

/** Runs the handler of a flight and says what came of it. Never throws. */
export function createExecute(options: ContextOptions): Execute {
  return async (flight) => {
    const { context, done } = createRun(options, flight)
    try {
      const doc: unknown = await flight.untilStopped(flight.registration.handler(flight.doc, context))
      if (doc === undefined) return { kind: 'nothing' }
      return checkNext(doc, flight, options.machines)
    } catch (thrown) {
      if (flight.stopped instanceof ClaimLost || thrown instanceof ClaimLost) return { kind: 'claim-lost' }
      if (flight.stopped) return { kind: 'stopped' }
      if (thrown instanceof Reject) return { kind: 'rejected', failure: failureOf(thrown) }
      return { kind: 'failed', failure: failureOf(thrown), done: done() }
    }
  }
}

/** What JavaScript lets through and the types do not. */
function checkNext(doc: unknown, flight: Flight, machines: Machines): Outcome {
  const { type, state } = flight.registration
  const next = doc as Partial<Doc> | null
  const reject = (reason: string): Outcome => ({ kind: 'rejected', failure: { code: 'bad_result', reason } })
  if (typeof next !== 'object' || next === null || typeof next.state !== 'string' || next.type !== type) {
    return reject(`the handler of ${type} in ${state} returned no document of its type with a state`)
  }
  const declared = machines[type]
  if (declared && next.state !== state && declared[state]?.next?.[next.state] !== 'sidecar') {
    return reject(`the machine of ${type} has no transition from ${state} to ${next.state} for the sidecar`)
  }
  return { kind: 'next', doc: next as Doc }
}
