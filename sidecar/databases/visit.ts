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
import { readWhenTold } from '../feed/read.ts'
import type { Random } from '../core/backoff.ts'
import type { Known, TrackedDatabase } from './tracked-database.ts'
import { matchAgain, matching } from './matching.ts'
import { prepare, type PrepareOptions } from './prepare.ts'

export interface VisitOptions
  extends Omit<EngineOptions, 'database' | 'partition' | 'prepare' | 'matchAgain' | 'visit'>, PrepareOptions {
  readonly random: Random
  /** Of all visits: for reading. */
  readonly semaphore: Semaphore
  /** Whose the checkpoints are: of all who have the same handlers. */
  readonly owner: string
  /** How often the connection has broken, after which an older copy may be there. */
  readonly breaks: () => number
  /** Whether other databases wait until this visit is over. */
  readonly isCrowded: () => boolean
  readonly onEngine: (engine: Engine) => void
  /** Called after each request for changes. */
  readonly onRead: () => void
}

export type Visited =
  /** When to come again, by the clock's `now`; undefined if not before it changes. */
  | { readonly kind: 'rest'; readonly nextAt: number | undefined }
  /** There is no such database. */
  | { readonly kind: 'missing' }
  /** It cannot be read now. */
  | { readonly kind: 'broken'; readonly code: CouchErrorCode }

/** A visit goes on for so long after there was nothing left to do: what comes then costs one request. */
const [LINGER_MS, CROWDED_MS] = [1000, 50]

/**
 * One visit of a database: its changes since the last one, and what they or their time ask for, until nothing is left
 * to do. It takes all that it finds, even if the database belongs to another worker by now: its checkpoint says that all before it
 * is done. Throws `CouchError` where it could not begin, and the signal's reason.
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
  if (known.breaks !== breaks()) known.checkpoint = known.checkpoints = undefined // an older copy, which has another, may be there
  const store = (known.checkpoints ??= createCheckpointStore(database, owner))
  const isFirst = known.checkpoint === undefined
  known.checkpoint ??= await store.load(signal)
  const { rest } = known.checkpoint ?? {}
  if (isFirst && rest && !tracked.wasTold && isWhereItWas(known)) return atRest(known, rest.nextAt)
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
  known.done = undefined
  const leaving = new AbortController()
  const checkpoints: CheckpointStore = {
    load: () => Promise.resolve(known.checkpoint),
    async save(checkpoint, signal) {
      if (tracked.known !== known) return // it is the checkpoint of another database
      const unrested = { ...checkpoint, rest: undefined }
      // What waits for a deploy is at rest for us; a worker that begins after the deploy has to list it.
      const kept = matched.table === options.table ? checkpoint : unrested
      const isToCount = options.counts?.undeclared.has(name) // by the list of each visit, also after a restart
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
      if (again !== matched && known.checkpoint) known.checkpoint = { ...known.checkpoint, rest: undefined } // until it is listed
      known.matched = matched = again
      return again.table
    },
    visit: {
      checkpoints,
      first: known.checkpoint?.seq ?? known.first,
      places: (known.places ??= new Map<string, Place>()),
      listFirst,
      paused,
      nextAt: listFirst ? undefined : rest?.nextAt,
      waits: (known.waits ??= createWaits(() => clock.ticks())),
      read: (from, signal) =>
        readWhenTold(
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
    onRead()
    return page
  }
  let isBegin = true
  /** Nothing is asked at the beginning if the last look at all databases says it. */
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
      if (visited.kind === 'rest') known.done = beyond(before, read)
      return visited
    } finally {
      leaving.abort(new Error('the visit is over'))
      await running
      if (known.places?.size === 0) known.places = undefined
      if (known.paused?.size === 0) known.paused = undefined
      if (known.waits?.size === 0) known.waits = undefined // thousands of databases wait for nothing
    }
  })

  async function untilRest(until: AbortSignal): Promise<Visited> {
    for (;;) {
      await clock.sleep(isCrowded() ? CROWDED_MS : LINGER_MS, until)
      const rest = engine.rest()
      const { trouble, inFlight, taken } = engine.health()
      if (trouble !== undefined && inFlight === 0 && isCrowded()) return { kind: 'broken', code: trouble }
      if (!rest || bell.isRinging) continue
      if (taken > takenBefore) {
        bell.ring() // what was written meanwhile: then its events cost one request, and no checkpoint
        continue
      }
      return { kind: 'rest', nextAt: rest.nextAt }
    }
  }
}

/** A restart finds it as it was left: there is nothing to do before its time. */
const isWhereItWas = ({ checkpoint, reading }: Known): boolean =>
  reading !== undefined && checkpoint?.life === reading.life && !hasNews(reading, extentOf(checkpoint.seq))

/**
 * Whether a look at all databases says that the checkpoint holds: it has seen every file that the checkpoint is of, and none was
 * behind. A checkpoint that was read here is later than the look; the next one compares it.
 */
function says(reading: Reading, checkpoint: Seq | undefined, isLoaded: boolean): boolean {
  if (checkpoint === undefined || reading.seq === undefined) return false
  const [now, before] = [extentOf(reading.seq), extentOf(checkpoint)] // not with the files of earlier looks
  const isOfAll = Object.keys(before.files ?? {}).every((uuid) => uuid in (now.files ?? {}))
  return isOfAll && !(isLoaded && isBehind(now, before))
}

/**
 * How far a visit has come that has read the feed up to there: all that was known before it is done. Nothing of that holds
 * where an older copy was put back meanwhile.
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
