import type { Seq } from '../couch/documents.ts'
import { hasNews, type Extent } from '../couch/shard-seqs.ts'
import type { Reading } from '../couch/survey.ts'
import type { Place } from '../docstate/finding/feed-places.ts'
import type { Waits } from '../docstate/waits.ts'
import type { Bell } from '../feed/bell.ts'
import type { CheckpointStore, KeptCheckpoint } from '../feed/checkpoint-store.ts'
import type { Matched } from './matching.ts'

/** A database that is visited now and then. */
export interface TrackedDatabase {
  readonly name: string
  known: Known
  /** An event has told of a change there: the last look at all may not have it. */
  wasTold: boolean
  /** Looks one after the other that have not found it. */
  missing: number
  /** It is gone, or another worker's: forgotten when its visit is over. */
  isLeft: boolean
  /** While it is visited. */
  visit: OpenVisit | undefined
}

/** What is known of a database. Another one of the same name, or an older copy, has one of its own. */
export interface Known {
  /** What is handled there; undefined before the first visit. */
  matched: Matched | undefined
  /** Keeps its checkpoint; undefined before the first visit. */
  checkpoints: CheckpointStore | undefined
  /** Where the last visit ended; undefined before the first. */
  checkpoint: KeptCheckpoint | undefined
  /** How often the connection had broken when the checkpoint was last known to hold. */
  breaks: number
  /** What visits wait for, one after the other; undefined if they wait for nothing. */
  waits: Waits | undefined
  /** How far the database was when it was at rest; undefined if it may not be. */
  done: Extent | undefined
  /** How far it was when all were looked at since the last break, with the files of all readings. */
  reading: Reading | undefined
  /** How far handlers have come that take only what is new; undefined if there are none. */
  places: Map<string, Place> | undefined
  /** Handlers that left documents in the list, since they were paused, by `type/state`; undefined if none did. */
  paused: ReadonlySet<string> | undefined
  /** One of them goes on: the next visit begins with the list. */
  isResumed: boolean
  /** Where it was at the first look of this process. */
  first: Seq | undefined
  /** The checkpoint that was compared with it. */
  compared: KeptCheckpoint | undefined
}

export interface OpenVisit {
  readonly bell: Bell
  /** Ends it: what runs has the grace period. */
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
    first: undefined,
    compared: undefined,
  },
})

export const createTracked = (name: string): TrackedDatabase => ({
  ...{ name, known: nothing(), wasTold: false, missing: 0, isLeft: false, visit: undefined },
})

/** It is, or may be, another database of the same name. What a visit that is open has known is its own from now on. */
export function forget(tracked: TrackedDatabase): void {
  tracked.known = nothing()
}

/** Whether a sweep has found more in it than was there when it was left. */
export const isNews = ({ checkpoint, done }: Known, found: Reading): boolean =>
  !done || hasNews(found, done) || (checkpoint?.life !== undefined && checkpoint.life !== found.life)
