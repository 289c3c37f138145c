import { copyJson } from '../core/copy.ts'
import { Reject } from '../core/errors.ts'
import { failureOf, isA, stackOf } from '../core/failure.ts'
import { ClaimLost } from './claims/claims.ts'
import { createRun, type ContextOptions, type Run } from './context.ts'
import type { Attempt } from './attempt.ts'
import { readNext } from './read-next.ts'
import type { Outcome } from './types.ts'
import { asHandlerOf } from './current-document.ts'

export interface ExecuteOptions extends ContextOptions {
  /** A clock that never jumps, milliseconds. */
  readonly ticks: () => number
}

export type Execute = (attempt: Attempt) => Promise<Outcome>

/** Runs the handler of an attempt and says what came of it. Never throws. */
export function createExecute(options: ExecuteOptions): Execute {
  const { telemetry, ticks } = options

  async function execute(attempt: Attempt, run: Run): Promise<Outcome> {
    const { registration } = attempt
    try {
      const given: unknown = await attempt.untilStopped(() =>
        asHandlerOf(telemetry.of(attempt), () => registration.handler(copyJson(attempt.doc), run.context)),
      )
      if (given === undefined || attempt.left) return { kind: 'nothing' }
      return { kind: 'next', doc: readNext(given, registration, options.machines) }
    } catch (thrown) {
      if (attempt.stopped instanceof ClaimLost || isA(thrown, ClaimLost)) return { kind: 'claim-lost' }
      if (attempt.stopped) return { kind: 'stopped' }
      if (isA(thrown, Reject)) return { kind: 'rejected', failure: failureOf(thrown) }
      return { kind: 'failed', failure: failureOf(thrown), stack: stackOf(thrown) }
    } finally {
      attempt.done = run.done()
      attempt.end()
    }
  }

  return async (attempt) => {
    const run = createRun(options, attempt)
    const counts = telemetry.counts.of(attempt.registration)
    telemetry.channel('handler:started')?.publish({ ...telemetry.of(attempt), key: run.context.key })
    counts.running += 1
    const began = ticks()
    const outcome = await execute(attempt, run)
    const ms = ticks() - began
    counts.running -= 1
    counts.runs[outcome.kind] += 1
    counts.took.add(ms)
    telemetry.channel('handler:ended')?.publish({ ...telemetry.of(attempt), outcome: outcome.kind, ms: Math.round(ms) })
    return outcome
  }
}
