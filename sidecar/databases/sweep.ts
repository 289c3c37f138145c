import type { Logger } from 'pino'
import { extentOf, filesAfter, hasNews, isBehind } from '../couch/shard-seqs.ts'
import type { Reading, Survey } from '../couch/survey.ts'
import type { KeptCheckpoint } from '../feed/checkpoint-store.ts'
import { isNews, type Known, type TrackedDatabase } from './tracked-database.ts'

export interface SweepOptions {
  readonly survey: Survey
  readonly trackedDatabases: ReadonlyMap<string, TrackedDatabase>
  /** Makes it where there is none. */
  readonly trackedOf: (name: string) => TrackedDatabase
  readonly isOurs: (name: string) => boolean
  /** It is further than it was left, or was never visited. */
  readonly find: (tracked: TrackedDatabase) => void
  /** It is another one of the same name, or an older copy. */
  readonly renew: (name: string) => void
  /** It is gone, or not ours any more. */
  readonly leave: (tracked: TrackedDatabase) => void
  readonly log: Logger
}

/** A database that is deleted may be made again at once; by the second look it was not. */
const MISSING_LOOKS = 2

const RESTORED = 'the database was restored from an older copy; it is read again from its start'

/** Whether it is behind what was known of it. What was read twice alike says nothing new. */
function hasLost(now: Reading, { reading, compared }: Known, checkpoint: KeptCheckpoint | undefined): boolean {
  if (reading && isBehind(now, reading)) return true
  if (!checkpoint || (checkpoint.life !== undefined && checkpoint.life !== now.life)) return false
  const isKnown = now.seq === reading?.seq && checkpoint === compared
  return !isKnown && isBehind(now, extentOf(checkpoint.seq))
}

/** Looks at all databases that are ours, for changes that no event has told of. Throws `CouchError`. */
export function createSweep({ survey, trackedDatabases, trackedOf, isOurs, find, renew, leave, log }: SweepOptions) {
  return async (signal: AbortSignal): Promise<void> => {
    const known = await survey.list((name) => trackedDatabases.has(name) || isOurs(name), signal)
    const there = new Set(known)
    const ours = known.filter(isOurs)
    const isKept = new Set(ours)
    for (const [name, tracked] of trackedDatabases) {
      tracked.missing = there.has(name) ? 0 : tracked.missing + 1
      if (tracked.missing === MISSING_LOOKS) log.info({ db: name }, 'the database was deleted; it is no longer visited')
      if (tracked.missing === MISSING_LOOKS || (there.has(name) && !isKept.has(name))) leave(tracked)
    }
    const checkpoints = new Map(ours.map((name) => [name, trackedDatabases.get(name)?.known.checkpoint])) // a visit may move them meanwhile
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
        const { life, changes, seq } = found
        const { known, visit } = tracked // anew if it was renewed
        known.reading = { life, changes, seq, files: filesAfter(found, known.reading) }
        known.first ??= seq
        known.compared = checkpoint
        if (visit ? !before || hasNews(found, before) : isNews(known, found)) find(tracked)
      }
    }
  }
}
