import type { Seq } from '../couch/documents.ts'
import { hasNews, type Extent } from '../couch/shard-seqs.ts'
import type { Reading } from '../couch/survey.ts'
import type { Place } from '../docstate/finding/feed-places.ts'
import type { Waits } from '../docstate/waits.ts'
import type { Bell } from '../feed/bell.ts'
import type { CheckpointStore, KeptCheckpoint } from '../feed/checkpoint-store.ts'
import type { Matched } from './matching.ts'

/** A database that is visited from time to time. */
export interface TrackedDatabase {
  readonly name: string
  known: Known
  /** An event has reported a change: the last sweep may not include it. */
  hasEvent: boolean
  /** Consecutive sweeps that did not find the database. */
  missing: number
  /** The database was deleted, or belongs to another worker: it is forgotten after its visit. */
  isLeft: boolean
  /** Set while a visit is open. */
  visit: OpenVisit | undefined
}

/** Knowledge about a database. A new database of the same name, or a restored older copy, starts without any. */
export interface Known {
  /** Handlers that run; undefined before the first visit. */
  matched: Matched | undefined
  /** Stores the checkpoint; undefined before the first visit. */
  checkpoints: CheckpointStore | undefined
  /** Checkpoint of the last visit; undefined before the first visit. */
  checkpoint: KeptCheckpoint | undefined
  /** Number of connection breaks when the checkpoint was last verified. */
  breaks: number
  /** Waits that continue from visit to visit; undefined if none. */
  waits: Waits | undefined
  /** Position at the end of the last visit, if it ended at rest or held back; undefined otherwise. */
  done: Extent | undefined
  /** Position at the last sweep since the last break, with the files of all sweeps. */
  reading: Reading | undefined
  /** Feed places of handlers with `since: 'now'`; undefined if none. */
  places: Map<string, Place> | undefined
  /** Paused handlers that left documents in the list, by `type/state`; undefined if none. */
  paused: ReadonlySet<string> | undefined
  /** One of the `paused` handlers has resumed: the next visit begins with the list. */
  isResumed: boolean
  /** Delay of the next visit after one that ended held back, milliseconds; undefined after one at rest. */
  heldMs: number | undefined
  /** Sequence at the first sweep of this process. */
  first: Seq | undefined
  /** The checkpoint that the last sweep compared with its reading. */
  compared: KeptCheckpoint | undefined
}

export interface OpenVisit {
  readonly bell: Bell
  /** When all remaining documents began to wait for their turn, in ticks, as of the last check for room. */
  heldSince: number | undefined
  /** The visit ends as soon as all remaining documents wait for their turn. */
  makesRoom: boolean
  /** Ends the visit. Running handlers get the grace period. */
  leave(reason: Error): void
}

const nothing = (): Known => ({
  ...{ matched: undefined, checkpoints: undefined, checkpoint: undefined, breaks: 0 },
  ...{
    waits: undefined,
    done: undefined,
    reading: undefined,
    places: undefined,
    paused: undefined,
    isResumed: false,
    heldMs: undefined,
    first: undefined,
    compared: undefined,
  },
})

export const createTracked = (name: string): TrackedDatabase => ({
  ...{ name, known: nothing(), hasEvent: false, missing: 0, isLeft: false, visit: undefined },
})

/** Forgets a database that may have been replaced. An open visit keeps the old `known`, for itself alone. */
export function forget(tracked: TrackedDatabase): void {
  tracked.known = nothing()
}

/** Whether a sweep has found changes since the last visit ended. */
export const isNews = ({ checkpoint, done }: Known, found: Reading): boolean =>
  !done || hasNews(found, done) || (checkpoint?.life !== undefined && checkpoint.life !== found.life)
