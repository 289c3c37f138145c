import type { Logger } from 'pino'
import { Permit, Semaphore } from '../core/semaphore.ts'
import type { BranchCheck } from './claims/branch-check.ts'
import type { Claims } from './claims/claims.ts'
import type { Execute } from './execute.ts'
import { timesLost, type Attempt } from './attempt.ts'
import type { Telemetry } from './telemetry.ts'
import type { Quarantine } from './quarantine.ts'
import type { SaveOutcome } from './save-outcome.ts'
import type { WriteResult } from './write-doc.ts'
import type { Outcome, Registration } from './types.ts'

export interface RunAttemptOptions {
  readonly registration: Registration
  readonly claims: Claims
  readonly branchCheck: BranchCheck
  readonly execute: Execute
  readonly saveOutcome: SaveOutcome
  /** Of all handlers of the process. */
  readonly quarantine: Quarantine
  readonly telemetry: Telemetry
  readonly ticks: () => number
  readonly log: Logger
  /** Aborted once no further handler may start. */
  readonly closing: AbortSignal
}

/**
 * `settled`: done, or written down for later. `not-ours`: another worker has it. `not-taken`: nothing of it could be
 * written now, and nobody else has it. `look-again`: it has changed before its turn came, or nobody knows whose it is.
 * `given-up`: the sidecar stops; nothing was done.
 */
export type AttemptEnd = 'settled' | 'not-ours' | 'not-taken' | 'look-again' | 'given-up'

/** Takes one document all the way: claim, run, save. */
export type RunAttempt = (attempt: Attempt) => Promise<AttemptEnd>

/** Of a handler that runs; not the promise itself, which would be waited for on its way. */
interface Begun {
  readonly outcome: Promise<Outcome>
}

/** So many documents that wait together are claimed one at a time. */
const FEW = 100
/** Of more of them this part is. */
const PART = 1 / 32
const MAX_REASONS = 10

/**
 * The way of the documents of one handler, of which at most `concurrency` run at once.
 *
 * A claim says that its handler begins, so a document is claimed when there is a place for its handler to run in. Claims
 * travel in groups; but a process that dies of a document as soon as its handler is called leaves in doubt what was claimed
 * with it. So of few that wait together each is claimed and begun by itself, and of many a small part.
 *
 * What was running when a worker was lost runs apart (`quarantine.ts`): then it is known which one it dies of.
 */
export function createRunAttempt(options: RunAttemptOptions): RunAttempt {
  const { registration, claims, branchCheck, execute, saveOutcome, quarantine, telemetry, ticks, log, closing } =
    options
  const { concurrency } = registration.options
  const counts = telemetry.counts.of(registration)
  const unsafe = registration.mode === 'unsafe'
  const running = new Semaphore(() => concurrency)
  const beginning = new Semaphore(groupSize)
  const refused = new Set<string>()
  /** The most that have waited together since none did. */
  let most = 0

  function groupSize(): number {
    const waiting = running.waiting + beginning.waiting
    most = waiting === 0 ? 0 : Math.max(most, waiting)
    return most <= FEW ? 1 : Math.ceil(most * PART)
  }

  async function claimAndBegin(attempt: Attempt, run: Permit, begin: Permit): Promise<Begun | AttemptEnd> {
    if (unsafe) await begin.enter()
    if (closing.aborted) return 'given-up'
    if (attempt.outdated || attempt.maybeBranched) return 'look-again'
    const end = unsafe ? await win(attempt, run, begin) : undefined
    return end ?? { outcome: runHandler(attempt) }
  }

  /** Undefined if the claim is ours, and says that its handler begins. */
  async function win(attempt: Attempt, run: Permit, begin: Permit): Promise<AttemptEnd | undefined> {
    const giveWay = () => {
      begin.leave()
      run.leave()
    }
    const letOthersBegin = () => begin.leave() // or one lost answer after the other would hold up all that wait
    const claim = await claims.take(attempt, giveWay, letOthersBegin).catch(unsent)
    if (claim === 'given-up') return claim
    counts.claims[claim.kind] += 1
    tellRefusal(attempt, claim)
    if (claim.kind === 'lost') {
      telemetry.channel('claim:lost')?.publish(telemetry.of(attempt))
      return 'not-ours'
    }
    if (claim.kind === 'accepted') return 'look-again'
    if (claim.kind === 'refused') return 'not-taken'
    telemetry.channel('claim:won')?.publish(telemetry.of(attempt))
    await branchCheck(attempt)
    await run.enter() // again, if it was contested
    await begin.enter() // or if an answer was lost
    const mayBegin = () => !closing.aborted && !attempt.outdated && claims.proven(attempt)
    if (mayBegin() && (await claims.begin(attempt)) && mayBegin()) return undefined
    giveWay() // first, so that all who wait here give back together
    await claims.release(attempt)
    return closing.aborted ? 'given-up' : attempt.outdated ? 'look-again' : 'not-ours'
  }

  /** Calls the handler before it returns. */
  async function runHandler(attempt: Attempt): Promise<Outcome> {
    counts.running += 1
    const began = ticks()
    try {
      const outcome = await execute(attempt)
      counts.runs[outcome.kind] += 1
      counts.took.add(ticks() - began)
      return outcome
    } finally {
      counts.running -= 1
    }
  }

  /** The sidecar stops while the claim waits for its turn to be sent. */
  function unsent(thrown: unknown): 'given-up' {
    if (closing.aborted && thrown === closing.reason) return 'given-up'
    throw thrown
  }

  /** Whatever refuses one claim refuses thousands: each reason is told once, until a claim is taken. */
  function tellRefusal(attempt: Attempt, claim: WriteResult): void {
    if (claim.kind === 'stored') refused.clear()
    if (claim.kind !== 'refused') return
    const known = refused.has(claim.failure.reason) || refused.size >= MAX_REASONS
    log[known ? 'debug' : 'error'](
      { doc: attempt.id, code: claim.failure.code, reason: claim.failure.reason },
      'CouchDB refuses the claim; trying again every 30 s',
    )
    refused.add(claim.failure.reason)
  }

  async function goAllTheWay(attempt: Attempt, run: Permit): Promise<AttemptEnd> {
    const begin = new Permit(beginning)
    const lost = timesLost(attempt.before)
    const closed = quarantine.enter(lost)
    if (closed) await closed
    try {
      const begun = await claimAndBegin(attempt, run, begin).finally(() => begin.leave())
      const outcome = typeof begun === 'string' ? begun : await begun.outcome
      run.leave()
      return typeof outcome === 'string' ? outcome : await saveOutcome(attempt, outcome)
    } finally {
      run.leave()
      quarantine.leave(lost)
      counts.inFlight -= 1
      claims.drop(attempt)
    }
  }

  // Thousands wait here: for each there is this promise and its place, and nothing else.
  const takeTurn: RunAttempt = (attempt) =>
    new Promise((resolve, reject) => {
      const run = new Permit(running)
      run.take(() => void goAllTheWay(attempt, run).then(resolve, reject))
    })

  return (attempt) => {
    counts.inFlight += 1
    return timesLost(attempt.before) > 0 ? quarantine.apart(() => takeTurn(attempt)) : takeTurn(attempt)
  }
}
