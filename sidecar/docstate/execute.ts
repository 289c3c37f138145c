import { copyJson } from '../core/copy.ts'
import { Reject } from '../core/errors.ts'
import { failureOf, isA, stackOf } from '../core/failure.ts'
import { ClaimLost } from './claims/claims.ts'
import { createRun, type ContextOptions, type Run } from './context.ts'
import type { Flight } from './flight.ts'
import { readNext } from './read-next.ts'
import type { Outcome } from './types.ts'
import { asHandlerOf } from './whose.ts'

export interface ExecuteOptions extends ContextOptions {
  /** A clock that never jumps, milliseconds. */
  readonly ticks: () => number
}

export type Execute = (flight: Flight) => Promise<Outcome>

/** Runs the handler of a flight and says what came of it. Never throws. */
export function createExecute(options: ExecuteOptions): Execute {
  const { life, ticks } = options

  async function execute(flight: Flight, run: Run): Promise<Outcome> {
    const { registration } = flight
    try {
      const given: unknown = await flight.untilStopped(() =>
        asHandlerOf(life.of(flight), () => registration.handler(copyJson(flight.doc), run.context)),
      )
      if (given === undefined || flight.left) return { kind: 'nothing' }
      return { kind: 'next', doc: readNext(given, registration, options.machines) }
    } catch (thrown) {
      if (flight.stopped instanceof ClaimLost || isA(thrown, ClaimLost)) return { kind: 'claim-lost' }
      if (flight.stopped) return { kind: 'stopped' }
      if (isA(thrown, Reject)) return { kind: 'rejected', failure: failureOf(thrown) }
      return { kind: 'failed', failure: failureOf(thrown), stack: stackOf(thrown) }
    } finally {
      flight.done = run.done()
      flight.end()
    }
  }

  return async (flight) => {
    const run = createRun(options, flight)
    life.channel('handler:started')?.publish({ ...life.of(flight), key: run.context.key })
    const began = ticks()
    const outcome = await execute(flight, run)
    life
      .channel('handler:ended')
      ?.publish({ ...life.of(flight), outcome: outcome.kind, ms: Math.round(ticks() - began) })
    return outcome
  }
}
