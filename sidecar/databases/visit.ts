import type { Semaphore } from '../core/semaphore.ts'
import { untilAny } from '../core/until-any.ts'
import type { Life } from '../couch/database.ts'
import type { Seq } from '../couch/documents.ts'
import type { CouchErrorCode } from '../couch/couch-errors.ts'
import { extentOf, filesAfter, furthest, hasNews, isBehind, type Extent } from '../couch/shard-seqs.ts'
import type { Reading } from '../couch/survey.ts'
import { createEngine, type Engine, type EngineOptions } from '../docstate/engine.ts'
import { createWaits } from '../docstate/waits.ts'
import type { Place } from '../docstate/finding/feed-places.ts'
import type { Bell } from '../feed/bell.ts'
import { pagesOf } from '../feed/change.ts'
import { createCheckpointStore, type CheckpointStore } from '../feed/checkpoint-store.ts'
import { readOnRing } from '../feed/read.ts'
import type { Random } from '../core/backoff.ts'
import type { Known, TrackedDatabase } from './tracked-database.ts'
import { matchAgain, matching } from './matching.ts'
import { prepare, type PrepareOptions } from './prepare.ts'

export interface VisitOptions
  extends Omit<EngineOptions, 'database' | 'partition' | 'prepare' | 'matchAgain' | 'visit'>, PrepareOptions {
  readonly random: Random
  /** Shared by all visits; limits concurrent reads. */
  readonly semaphore: Semaphore
  /** Owner of the checkpoints, shared by all workers with the same handlers. */
  readonly owner: string
  /** Number of connection breaks. After each, an older copy may have been restored. */
  readonly breaks: () => number
  /** Whether other databases wait for a visit, and so many visits are open that it has to end soon. */
  readonly isCrowded: () => boolean
  readonly onEngine: (engine: Engine) => void
  /** Called after each request for changes. */
  readonly onRead: () => void
}

export type Visited =
  /** No work is left. `nextAt`: when the next document is due, by the clock's `now`; undefined if none. */
  | { readonly kind: 'rest'; readonly nextAt: number | undefined }
  /** All remaining documents wait for their turn, and other databases for a visit. `nextAt` as above. */
  | { readonly kind: 'held-back'; readonly nextAt: number | undefined }
  /** The database does not exist. */
  | { readonly kind: 'missing' }
  /** The database cannot be read now. */
  | { readonly kind: 'broken'; readonly code: CouchErrorCode }

/**
 * A visit lingers this long after its work: a change in that time costs one request. After writes of its own it lingers
 * twice, until their event has come. Shorter if others wait.
 */
const [LINGER_MS, CROWDED_MS] = [1000, 50]

/**
 * Visits a database: handles its changes since the last visit, and documents that are due. The visit ends when no work
 * is left. It also ends when it has to make room and all remaining documents wait for their turn. It handles every
 * document, even if the database belongs to another worker by now: its checkpoint states that all before it is done.
 * Throws `CouchError` if the visit could not begin, and the signal's reason.
 */
export async function visit(
  tracked: TrackedDatabase,
  options: VisitOptions,
  bell: Bell,
  signal: AbortSignal,
): Promise<Visited> {
  const { couch, name, owner, clock, breaks, onEngine, onRead, isCrowded } = options
  const database = couch.db(name)
  const { known } = tracked
  // An older copy with another checkpoint may have been restored.
  if (known.breaks !== breaks()) known.checkpoint = known.checkpoints = undefined
  const store = (known.checkpoints ??= createCheckpointStore(database, owner))
  const isFirst = known.checkpoint === undefined
  known.checkpoint ??= await store.load(signal)
  const { rest } = known.checkpoint ?? {}
  if (isFirst && rest && !tracked.hasEvent && isWhereItWas(known)) return atRest(known, rest.nextAt)
  if (!known.matched) {
    const ddoc = await prepare(options, signal)
    if (!ddoc) return { kind: 'missing' }
    known.matched = matching(options, ddoc)
  }
  let { matched } = known

  const isDue = !rest || known.isResumed || (rest.nextAt !== undefined && rest.nextAt <= clock.now())
  const listFirst = known.checkpoint !== undefined && isDue
  const paused = (known.paused = new Set<string>(known.isResumed ? [] : known.paused))
  known.isResumed = false
  const before = { changes: known.reading?.changes ?? 0, files: furthest(known.done?.files, known.reading?.files) }
  let read: Seq | undefined
  let takenBefore = 0
  let isNothingNew = false
  known.done = undefined
  const leaving = new AbortController()
  const checkpoints: CheckpointStore = {
    load: () => Promise.resolve(known.checkpoint),
    async save(checkpoint, signal) {
      if (tracked.known !== known) return // the database was replaced: the checkpoint belongs to the old one
      const unrested = { ...checkpoint, rest: undefined }
      // Documents that wait for a deploy are at rest here. A worker that starts after the deploy has to list them.
      const kept = matched.table === options.table ? checkpoint : unrested
      // Each visit counts undeclared documents by the list, also after a restart.
      const isToCount = options.counts?.undeclared.has(name)
      await store.save(isToCount || paused.size > 0 ? unrested : kept, signal)
      known.checkpoint = isToCount ? unrested : checkpoint
    },
    isPutBack: (signal) => store.isPutBack(signal),
  }
  const engine = createEngine({
    ...options,
    database,
    table: matched.table,
    prepare: (until) => prepare(options, until),
    async matchAgain(rev, until) {
      const again = await matchAgain(options, matched, rev, until)
      // Not at rest before the next list.
      if (again !== matched && known.checkpoint) known.checkpoint = { ...known.checkpoint, rest: undefined }
      known.matched = matched = again
      return again.table
    },
    visit: {
      copies: known.reading?.copies,
      checkpoints,
      stopping: signal,
      first: known.checkpoint?.seq ?? known.first,
      places: (known.places ??= new Map<string, Place>()),
      listFirst,
      paused,
      nextAt: listFirst ? undefined : rest?.nextAt,
      waits: (known.waits ??= createWaits(() => clock.ticks())),
      read: (from, signal) =>
        readOnRing(
          { ...options, readPage, life, isPutBack: (until) => checkpoints.isPutBack(until), from, bell },
          signal,
        ),
    },
  })
  const readPages = pagesOf(database)
  async function readPage(...question: Parameters<typeof readPages>) {
    takenBefore = engine.health().taken
    const page = await readPages(...question)
    read = page.seq
    isNothingNew = page.rows.length === 0
    onRead()
    return page
  }
  let isBegin = true
  /** Saves the first request if the last sweep proves that the checkpoint is valid. */
  async function life(checkpoint: Seq | undefined, signal: AbortSignal): Promise<Life> {
    const { reading } = known
    const isSaid = isBegin && reading !== undefined && says(reading, checkpoint, isFirst)
    isBegin = false
    const count = breaks()
    const found = isSaid
      ? { life: reading.life, isBehind: false, copies: 1 }
      : await database.life(checkpoint, { signal })
    known.breaks = count
    return found
  }

  onEngine(engine)
  return untilAny([signal, leaving.signal], async (until) => {
    const running = engine.run(until)
    running.catch((thrown: unknown) => leaving.abort(thrown))
    bell.ring()
    try {
      const visited = await untilRest(until)
      if (visited.kind === 'rest' || visited.kind === 'held-back') known.done = beyond(before, read)
      if (visited.kind === 'held-back' && known.checkpoint) known.checkpoint = { ...known.checkpoint, rest: undefined }
      return visited
    } finally {
      leaving.abort(new Error('the visit is over'))
      await running
      if (known.places?.size === 0) known.places = undefined
      if (known.paused?.size === 0) known.paused = undefined
      if (known.waits?.size === 0) known.waits = undefined // saves memory: thousands of databases have no waits
    }
  })

  async function untilRest(until: AbortSignal): Promise<Visited> {
    let again = 0
    let hasWaited = false
    for (;;) {
      await clock.sleep(isCrowded() ? CROWDED_MS : LINGER_MS, until)
      const rest = engine.rest()
      const { trouble, inFlight, taken } = engine.health()
      const held = tracked.visit?.makesRoom && isCrowded() ? engine.heldBack() : undefined
      if (held && !bell.isRinging) return { kind: 'held-back', nextAt: held.nextAt }
      if (trouble !== undefined && inFlight === 0 && isCrowded()) return { kind: 'broken', code: trouble }
      if (!rest || bell.isRinging) continue
      if (taken > takenBefore) {
        if (isCrowded() || hasWaited) bell.ring() // reads its own writes, so that their event causes no other visit
        hasWaited = !hasWaited
        continue
      }
      if (isNothingNew && (known.reading?.copies ?? 1) > 1 && bell.rung !== again) {
        bell.ring() // the copy that was read may not have the change of an event yet
        again = bell.rung
        continue
      }
      return { kind: 'rest', nextAt: rest.nextAt }
    }
  }
}

/** Whether a restart finds the database unchanged since its checkpoint: no work is left before `nextAt`. */
const isWhereItWas = ({ checkpoint, reading }: Known): boolean =>
  reading !== undefined && checkpoint?.life === reading.life && !hasNews(reading, extentOf(checkpoint.seq))

/**
 * Whether the last sweep proves that the checkpoint is valid: it has read every file of the checkpoint, and no file was
 * behind. A checkpoint that this process has moved may be newer than the sweep; the next sweep compares it.
 */
function says(reading: Reading, checkpoint: Seq | undefined, isLoaded: boolean): boolean {
  if (checkpoint === undefined || reading.seq === undefined) return false
  const [now, before] = [extentOf(reading.seq), extentOf(checkpoint)] // without the files of earlier sweeps
  const isOfAll = Object.keys(before.files ?? {}).every((uuid) => uuid in (now.files ?? {}))
  return isOfAll && !(isLoaded && isBehind(now, before))
}

/**
 * Position after a visit that has read the feed up to `read`: all that was known before is done. If an older copy was
 * restored meanwhile, only `read` counts.
 */
function beyond(before: Extent, read: Seq | undefined): Extent {
  if (read === undefined) return before
  const now = extentOf(read)
  if (isBehind(now, before)) return now
  return { changes: Math.max(before.changes, now.changes), seq: read, files: filesAfter(now, before) }
}

function atRest(known: Known, nextAt: number | undefined): Visited {
  known.done = known.reading
  return { kind: 'rest', nextAt }
}
