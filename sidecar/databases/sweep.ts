import type { Logger } from 'pino'
import { extentOf, filesAfter, hasNews, isBehind } from '../couch/shard-seqs.ts'
import type { Reading, Survey } from '../couch/survey.ts'
import type { KeptCheckpoint } from '../feed/checkpoint-store.ts'
import { isNews, type Known, type TrackedDatabase } from './tracked-database.ts'

export interface SweepOptions {
  readonly survey: Survey
  readonly trackedDatabases: ReadonlyMap<string, TrackedDatabase>
  /** Returns the entry of a database, and creates a missing one. */
  readonly trackedOf: (name: string) => TrackedDatabase
  readonly isOurs: (name: string) => boolean
  /** Called for a database that has changed since its last visit, or was never visited. */
  readonly find: (tracked: TrackedDatabase) => void
  /** Called for a new database of the same name, or a restored older copy. */
  readonly renew: (name: string) => void
  /** Called for a database that was deleted, or belongs to another worker now. */
  readonly leave: (tracked: TrackedDatabase) => void
  readonly log: Logger
}

/** Consecutive sweeps without a database until it counts as deleted: it may be recreated at once. */
const MISSING_LOOKS = 2

const RESTORED = 'the database was restored from an older copy; it is read again from its start'

/** Whether a database is behind its known position. An unchanged sequence and checkpoint are not compared again. */
function hasLost(now: Reading, { reading, compared }: Known, checkpoint: KeptCheckpoint | undefined): boolean {
  if (reading && isBehind(now, reading)) return true
  if (!checkpoint || (checkpoint.life !== undefined && checkpoint.life !== now.life)) return false
  const isKnown = now.seq === reading?.seq && checkpoint === compared
  return !isKnown && isBehind(now, extentOf(checkpoint.seq))
}

/** Checks all databases of this worker for changes without an event. Each sweep throws `CouchError`. */
export function createSweep({ survey, trackedDatabases, trackedOf, isOurs, find, renew, leave, log }: SweepOptions) {
  return async (signal: AbortSignal): Promise<void> => {
    const known = await survey.list((name) => trackedDatabases.has(name) || isOurs(name), signal)
    const existing = new Set(known)
    const ours = known.filter(isOurs)
    const isKept = new Set(ours)
    for (const [name, tracked] of trackedDatabases) {
      tracked.missing = existing.has(name) ? 0 : tracked.missing + 1
      if (tracked.missing === MISSING_LOOKS) log.info({ db: name }, 'the database was deleted; it is no longer visited')
      if (tracked.missing === MISSING_LOOKS || (existing.has(name) && !isKept.has(name))) leave(tracked)
    }
    // Copied, because a visit may move a checkpoint during the read.
    const checkpoints = new Map(ours.map((name) => [name, trackedDatabases.get(name)?.known.checkpoint]))
    for await (const readings of survey.read(ours, signal)) {
      for (const [name, found] of readings) {
        const tracked = trackedOf(name)
        const before = tracked.known.reading
        const checkpoint = checkpoints.get(name)
        if (before && before.life !== found.life) renew(name)
        else if (hasLost(found, tracked.known, checkpoint)) {
          log.warn({ db: name }, RESTORED)
          renew(name)
        }
        const { life, copies, changes, seq } = found
        const { known, visit } = tracked // read again: `renew` replaces `known`
        known.reading = { life, copies, changes, seq, files: filesAfter(found, known.reading) }
        known.first ??= seq
        known.compared = checkpoint
        if (visit ? !before || hasNews(found, before) : isNews(known, found)) find(tracked)
      }
    }
  }
}
