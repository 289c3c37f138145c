/**
 * The path of one document through its handler. Each attempt is in one of these states, and has one of these ends:
 *
 *     waiting ──> claiming ──> executing ──> saving ──> settled       saved, or recorded for later
 *        │           │                         ├──────> not-taken     CouchDB refuses every record
 *        │           │                         └──────> overtaken     another writer was first
 *        │           ├──> not-taken     CouchDB refuses the claim
 *        │           ├──> not-ours      another worker has won
 *        │           ├──> overtaken     the claim grew too old, and was released
 *        ├───────────┴──> look-again    the document has changed or has branches, or its claim holder is unknown
 *        ├──────────────> paused        the handler is paused: a resync finds the document
 *        └──────────────> given-up      the sidecar stops
 *
 * After `not-ours` and `overtaken` the document is read again: on a cluster, no row may bring its last revision.
 *
 * Safe handlers need no claim. At most `concurrency` documents of one handler are in `executing`, and few more are
 * claimed (`turns.ts`). An attempt first waits for documents of the same key (`keys.ts`). Then it waits for a turn,
 * then for a start within the limit.
 */
import { onAbort } from '../core/on-abort.ts'
import type { Claims } from './claims/claims.ts'
import type { WinClaim } from './claims/win-claim.ts'
import { timesLost, type Attempt, type AttemptEnd } from './attempt.ts'
import type { Execute } from './execute.ts'
import type { HandlerLimit } from './handler-limit.ts'
import { keyOrNone, type Keys } from './keys.ts'
import type { Quarantine } from './quarantine.ts'
import type { SaveOutcome } from './save-outcome.ts'
import type { Telemetry } from './telemetry.ts'
import { Turns, type Turn } from './turns.ts'
import type { Registration } from './types.ts'

/** Runs one attempt to its end. */
export type RunAttempt = (attempt: Attempt) => Promise<AttemptEnd>

export interface RunAttemptOptions {
  readonly registration: Registration
  readonly limit: HandlerLimit
  readonly keys: Keys
  readonly claims: Pick<Claims, 'drop'>
  readonly winClaim: WinClaim
  readonly execute: Execute
  readonly saveOutcome: SaveOutcome
  /** Shared by all handlers of the process. */
  readonly quarantine: Quarantine
  readonly telemetry: Telemetry
  /** Number of changes of the database that were not read yet. */
  readonly unread: () => number
  /** A monotonic clock, milliseconds. */
  readonly ticks: () => number
  /** Aborted once no further handler may start. */
  readonly closing: AbortSignal
}

export function createRunAttempt(options: RunAttemptOptions): RunAttempt {
  const { registration, limit, keys, claims, winClaim, execute, saveOutcome } = options
  const { quarantine, telemetry, unread, ticks, closing } = options
  const counts = telemetry.counts.of(registration)
  const isUnsafe = registration.mode === 'unsafe'
  const turns = new Turns({ shared: limit.turns, unread, ticks })
  if (closing.aborted) turns.close()
  else onAbort(closing, () => turns.close())

  async function run(attempt: Attempt, turn: Turn): Promise<AttemptEnd> {
    const mayStart = limit.isFree || (await limit.mayStart(closing))
    attempt.waits = !mayStart
    const lost = timesLost(attempt.before)
    const closed = quarantine.enter(lost)
    if (closed) await closed
    try {
      if (isUnsafe && mayStart) await turn.mayClaim()
      if (closing.aborted) return 'given-up'
      if (!mayStart || limit.isPaused) return 'paused'
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
      counts.underWay.delete(attempt)
      claims.drop(attempt)
    }
  }

  function giveUp(attempt: Attempt, turn: Turn): AttemptEnd {
    turn.leave()
    counts.underWay.delete(attempt)
    claims.drop(attempt)
    return 'given-up'
  }

  // Thousands of attempts wait here, so each has only this promise and its turn.
  const waitForTurn: RunAttempt = (attempt) =>
    new Promise((resolve, reject) => {
      turns.take((turn) => {
        if (closing.aborted) resolve(giveUp(attempt, turn))
        else void run(attempt, turn).then(resolve, reject)
      })
    })

  const waitForKey: RunAttempt = (attempt) => {
    const key = keyOrNone(registration, attempt.doc)
    return key === undefined ? waitForTurn(attempt) : keys.run(key, () => waitForTurn(attempt))
  }

  return (attempt) => {
    counts.underWay.set(attempt, ticks())
    return timesLost(attempt.before) > 0 ? quarantine.apart(() => waitForKey(attempt)) : waitForKey(attempt)
  }
}
