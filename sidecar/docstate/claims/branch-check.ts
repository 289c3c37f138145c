import type { Database } from '../../couch/database.ts'
import type { Attempt } from '../attempt.ts'
import type { ReadHeld } from './read-held.ts'

export interface BranchCheckOptions {
  readonly database: Database
  readonly readHeld: ReadHeld
  /** Copies of each document in the cluster. Default: read before the first check. */
  readonly copies?: number | undefined
}

/**
 * Checks whether a document that this worker has just won has unknown branches. If so, it sets `attempt.branched`. A
 * client may have written a branch at another cluster node, where another worker won or finished it.
 *
 * Both workers can win, each on its branch. But a majority of the copies has each claim before its worker checks, and a
 * check reads a majority. So at least one of the two workers sees the other's claim or outcome. That worker runs no
 * handler: it releases its claim, and the branches are merged.
 *
 * A server with one copy of each document shows branches in every read: it needs no check.
 */
export type BranchCheck = (attempt: Attempt) => Promise<void>

export function createBranchCheck(options: BranchCheckOptions): BranchCheck {
  const { database, readHeld } = options
  let { copies } = options
  let waiting: Pending[] = []
  let isLooking = false

  /** Checks all waiting attempts together, until none waits. */
  async function look(): Promise<void> {
    isLooking = true
    while (waiting.length > 0) {
      await new Promise(setImmediate) // collects attempts that were won together
      const some = waiting
      waiting = []
      const ids = some.map(({ attempt }) => attempt.id)
      try {
        const docs = await readHeld((how) => database.getMany(ids, { ...how, onFailed: () => undefined }), true)
        const whole = new Set(docs.filter(({ _conflicts }) => !_conflicts).map(({ _id }) => _id))
        for (const { attempt, resolve } of some) {
          if (!whole.has(attempt.id)) attempt.branched = true // also if the document is unreadable or deleted
          resolve()
        }
      } catch (thrown) {
        for (const { reject } of some) reject(thrown)
      }
    }
    isLooking = false
  }

  return async (attempt) => {
    copies ??= (await readHeld((how) => database.info(how), true)).cluster?.n ?? 1
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
