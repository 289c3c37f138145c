/**
 * The way of one document through its handler. Each attempt is in one of these states, and has one of these ends:
 *
 *     waiting ──> claiming ──> executing ──> saving ──> settled       saved, or written down for later
 *        │           │                         └──────> not-taken     CouchDB refuses every record
 *        │           ├──> not-taken     CouchDB refuses the claim
 *        │           ├──> not-ours      another worker has won
 *        ├───────────┴──> look-again    it has changed meanwhile, has branches, or its holder is unknown
 *        └──────────────> given-up      the sidecar stops
 *
 * Safe handlers need no claim. At most `concurrency` documents of one handler are in `executing`, and few more are claimed (`turns.ts`).
 */
import type { Claims } from './claims/claims.ts'
import type { WinClaim } from './claims/win-claim.ts'
import { timesLost, type Attempt, type AttemptEnd } from './attempt.ts'
import type { Execute } from './execute.ts'
import type { Quarantine } from './quarantine.ts'
import type { SaveOutcome } from './save-outcome.ts'
import type { Telemetry } from './telemetry.ts'
import { Turns, type Turn } from './turns.ts'
import type { Registration } from './types.ts'

/** Takes one document all the way. */
export type RunAttempt = (attempt: Attempt) => Promise<AttemptEnd>

export interface RunAttemptOptions {
  readonly registration: Registration
  readonly claims: Pick<Claims, 'drop'>
  readonly winClaim: WinClaim
  readonly execute: Execute
  readonly saveOutcome: SaveOutcome
  /** One for all handlers of the process. */
  readonly quarantine: Quarantine
  readonly telemetry: Telemetry
  /** Changes of the database that were not read yet. */
  readonly unread: () => number
  /** A clock that never jumps, milliseconds. */
  readonly ticks: () => number
  /** Aborted once no further handler may start. */
  readonly closing: AbortSignal
}

export function createRunAttempt(options: RunAttemptOptions): RunAttempt {
  const { registration, claims, winClaim, execute, saveOutcome, quarantine, telemetry, unread, ticks, closing } =
    options
  const counts = telemetry.counts.of(registration)
  const isUnsafe = registration.mode === 'unsafe'
  const { concurrency } = registration.options
  const turns = new Turns({ concurrency, hasClaims: isUnsafe, unread, ticks })

  async function run(attempt: Attempt, turn: Turn): Promise<AttemptEnd> {
    const lost = timesLost(attempt.before)
    const closed = quarantine.enter(lost)
    if (closed) await closed
    try {
      if (isUnsafe) await turn.mayClaim()
      if (closing.aborted) return 'given-up'
      if (attempt.outdated || attempt.maybeBranched) return 'look-again'
      const end = isUnsafe ? await winClaim(attempt, turn) : undefined
      if (end) return end

      turn.begins()
      const executing = execute(attempt) // calls the handler at once
      turn.letOthersBegin()
      const outcome = await executing
      turn.leave()
      return await saveOutcome(attempt, outcome)
    } finally {
      turn.leave()
      quarantine.leave(lost)
      counts.inFlight -= 1
      claims.drop(attempt)
    }
  }

  // Thousands wait here: for each there is this promise and its turn, and nothing else.
  const waitForTurn: RunAttempt = (attempt) =>
    new Promise((resolve, reject) => {
      turns.take((turn) => void run(attempt, turn).then(resolve, reject))
    })

  return (attempt) => {
    counts.inFlight += 1
    return timesLost(attempt.before) > 0 ? quarantine.apart(() => waitForTurn(attempt)) : waitForTurn(attempt)
  }
}
