import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import { withRetries } from '../../couch/with-retries.ts'
import type { Attempt } from '../attempt.ts'
import type { AskHeld } from './ask-held.ts'

export interface BranchCheckOptions {
  readonly database: Database
  readonly askHeld: AskHeld
  readonly clock: Clock
  readonly random: Random
  /** Ends all retries. */
  readonly signal: AbortSignal
}

/**
 * Looks whether a document that we have just won has branches of which we did not know, and notes it in the attempt: a
 * client wrote it at another node of a cluster, where another worker has won, or finished, what the client wrote there.
 *
 * Both workers can win, each on its branch. But each claim is on a majority of the copies before its worker looks, and
 * a look reads a majority: of two such workers at least one sees the claim of the other, or what came of it. Nothing is
 * run then: the claim is given back, and the branches are made one document.
 *
 * A server that has one copy of each document tells of branches whenever it is read: there it costs nothing.
 */
export type BranchCheck = (attempt: Attempt) => Promise<void>

export function createBranchCheck(options: BranchCheckOptions): BranchCheck {
  const { database, askHeld, clock, random, signal } = options
  const ask: AskHeld = (question, isHeld) => withRetries(() => askHeld(question, isHeld), { clock, random, signal })
  let copies: number | undefined
  let waiting: Pending[] = []
  let isLooking = false

  /** At all that wait together, until none does. */
  async function look(): Promise<void> {
    isLooking = true
    while (waiting.length > 0) {
      await new Promise(setImmediate) // so many as were won together
      const some = waiting
      waiting = []
      const ids = some.map(({ attempt }) => attempt.id)
      try {
        const docs = await ask((how) => database.getMany(ids, { ...how, onFailed: () => undefined }), true)
        const whole = new Set(docs.filter(({ _conflicts }) => !_conflicts).map(({ _id }) => _id))
        for (const { attempt, resolve } of some) {
          if (!whole.has(attempt.id)) attempt.branched = true // or it cannot be read, or has gone
          resolve()
        }
      } catch (thrown) {
        for (const { reject } of some) reject(thrown)
      }
    }
    isLooking = false
  }

  return async (attempt) => {
    copies ??= (await ask((how) => database.info(how), true)).cluster?.n ?? 1
    if (copies === 1) return
    await new Promise<void>((resolve, reject) => {
      waiting.push({ attempt, resolve, reject })
      if (!isLooking) void look()
    })
  }
}

interface Pending {
  readonly attempt: Attempt
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}
