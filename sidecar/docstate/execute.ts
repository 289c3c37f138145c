import { createAlarms } from '../core/alarms.ts'
import type { Clock } from '../core/clock.ts'
import { copyJson } from '../core/copy.ts'
import { lasting } from '../core/duration.ts'
import { Reject, RetryLater, SidecarError } from '../core/errors.ts'
import { failureOf, isA, stackOf } from '../core/failure.ts'
import { ClaimLost } from './claims/claims.ts'
import { keyOf } from './keys.ts'
import { createRun, type ContextOptions, type Run } from './context.ts'
import type { Attempt } from './attempt.ts'
import { readNext } from './read-next.ts'
import type { Outcome } from './types.ts'
import { asHandlerOf } from './current-document.ts'

export interface ExecuteOptions extends ContextOptions {
  readonly clock: Clock
  /** Ends the watch on handlers that run beyond their timeout. */
  readonly signal: AbortSignal
}

export type Execute = (attempt: Attempt) => Promise<Outcome>

/** A handler that listens to its signal ends within this time after the abort. */
const LISTENS_MS = 5000
/** Further overdue runs of a handler at the same time are logged at `debug`, not as warnings. */
const FEW = 5

/** Abort reason of `ctx.signal` when a run exceeds its timeout. */
class TimeIsUp extends SidecarError {
  override readonly name = 'TimeIsUp'
}

/** Runs the handler of an attempt within its timeout, and returns the outcome. Never throws. */
export function createExecute(options: ExecuteOptions): Execute {
  const { telemetry, clock, signal, log } = options
  const alarms = createAlarms(clock)

  async function execute(attempt: Attempt, run: Run): Promise<Outcome> {
    const { registration } = attempt
    const { timeoutMs } = registration.options
    const timeIsUp = () => {
      alarm.stop()
      attempt.stop(new TimeIsUp('timeout', `the handler has not ended within ${lasting(timeoutMs)}`))
    }
    const alarm = alarms.set(timeoutMs, timeIsUp)
    let running: Promise<unknown> | undefined
    attempt.given = attempt.doc
    try {
      keyOf(registration, attempt.doc) // throws `Reject` if the key is invalid
      const given = await attempt.untilStopped(
        () =>
          (running = asHandlerOf(telemetry.of(attempt), () =>
            registration.handler(copyJson(attempt.doc), run.context),
          )),
      )
      if (given === undefined || attempt.left) return { kind: 'nothing' }
      return { kind: 'next', doc: readNext(given, registration, options.machines) }
    } catch (thrown) {
      if (attempt.stopped instanceof ClaimLost || isA(thrown, ClaimLost)) return { kind: 'claim-lost' }
      if (attempt.stopped instanceof TimeIsUp) {
        if (running) watchOverdue(attempt, running)
        return { kind: 'failed', failure: failureOf(attempt.stopped), stack: undefined }
      }
      if (attempt.stopped) return { kind: 'stopped' }
      if (isA(thrown, Reject)) return { kind: 'rejected', failure: failureOf(thrown) }
      const again = isA(thrown, RetryLater) ? thrown.when : undefined
      return { kind: 'failed', failure: failureOf(thrown), stack: stackOf(thrown), again }
    } finally {
      alarm.stop()
      attempt.done = run.done()
      attempt.end()
    }
  }

  /** Counts and logs a handler that runs on after its timeout. Its result is ignored. */
  function watchOverdue({ id, registration }: Attempt, running: Promise<unknown>): void {
    const { type, state } = registration
    const counts = telemetry.counts.of(registration)
    let hasEnded = false
    const end = () => {
      hasEnded = true
      counts.overdue -= 1
    }
    counts.overdue += 1
    running.then(end, end)
    const warnOverdue = () => {
      if (hasEnded) return
      log[counts.overdue > FEW ? 'debug' : 'warn'](
        { doc: id, type, state, overdue: counts.overdue },
        `a handler continues ${lasting(LISTENS_MS)} after its timeout: it ignores ctx.signal`,
      )
    }
    clock.sleep(LISTENS_MS, signal).then(warnOverdue, () => undefined)
  }

  return async (attempt) => {
    const run = createRun(options, attempt)
    const counts = telemetry.counts.of(attempt.registration)
    telemetry.channel('handler:started')?.publish({ ...telemetry.of(attempt), key: run.context.key })
    counts.running += 1
    const began = (attempt.beganAt = clock.ticks())
    counts.waited.add(began - (counts.underWay.get(attempt) ?? began))
    const outcome = await execute(attempt, run)
    const ms = clock.ticks() - began
    counts.running -= 1
    counts.runs[outcome.kind] += 1
    counts.took.add(ms)
    attempt.tookMs = ms
    telemetry.channel('handler:ended')?.publish({ ...telemetry.of(attempt), outcome: outcome.kind, ms: Math.round(ms) })
    return outcome
  }
}
