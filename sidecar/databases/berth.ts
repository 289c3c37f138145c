import { hasNews, type Extent } from '../couch/shard-seqs.ts'
import type { Reading } from '../couch/survey.ts'
import type { Waits } from '../docstate/waits.ts'
import type { Bell } from '../feed/bell.ts'
import type { KeptPlace, PlaceStore } from '../feed/place-store.ts'
import type { Matched } from './matching.ts'

/** What is known of a database that is visited now and then. */
export interface Berth {
  readonly name: string
  /** What is handled there; undefined before the first visit. */
  matched: Matched | undefined
  /** Keeps its place; undefined before the first visit. */
  places: PlaceStore | undefined
  /** Where the last visit ended; undefined before the first, and when it is of another life. */
  place: KeptPlace | undefined
  /** What visits wait for, one after the other; undefined if they wait for nothing. */
  waits: Waits | undefined
  /** How far the database was when it was at rest; undefined if it may not be. */
  done: Extent | undefined
  /** How far it was when all were looked at, with the files of all readings. */
  reading: Reading | undefined
  /** Somebody has told of a change there, once: `reading` may not have it. */
  wasTold: boolean
  /** Looks one after the other that have not found it. */
  missing: number
  /** It is gone, or another worker's: forgotten when its visit is over. */
  isLeft: boolean
  /** While it is visited. */
  visit: OpenVisit | undefined
}

export interface OpenVisit {
  readonly bell: Bell
  /** Ends it: what runs has the grace period. */
  leave(reason: Error): void
}

export const createBerth = (name: string): Berth => ({
  name,
  matched: undefined,
  places: undefined,
  place: undefined,
  waits: undefined,
  done: undefined,
  reading: undefined,
  wasTold: false,
  missing: 0,
  isLeft: false,
  visit: undefined,
})

/** It is, or may be, another database of the same name. */
export function forgetPlace(berth: Berth): void {
  berth.matched = undefined // its design document may be another, or none
  berth.places = undefined // it remembers a revision
  berth.place = undefined
  berth.waits = undefined
  berth.done = undefined
  berth.reading = undefined
}

/** Its place is read anew before the next visit: an older copy, which has another, may have been put back. */
export function doubtPlace(berth: Berth): void {
  berth.place = undefined
  berth.places = undefined
}

/** Whether a sweep has found more in it than was there when it was left. */
export const isNews = ({ place, done }: Berth, found: Reading): boolean =>
  !done || hasNews(found, done) || (place?.life !== undefined && place.life !== found.life)
