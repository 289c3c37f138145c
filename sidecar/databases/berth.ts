import { seqText, type Seq } from '../couch/documents.ts'
import type { Reading } from '../couch/survey.ts'
import type { DispatchTable } from '../docstate/assess.ts'
import type { Bell } from '../feed/bell.ts'
import type { KeptPlace, PlaceStore } from '../feed/place-store.ts'

/** What is known of a database that is visited now and then. */
export interface Berth {
  readonly name: string
  /** The handlers that its design document knows; undefined before the first visit. */
  table: DispatchTable | undefined
  /** Keeps its place; undefined before the first visit. */
  places: PlaceStore | undefined
  /** Where the last visit ended; undefined before the first, and when it is of another life. */
  place: KeptPlace | undefined
  /** How far the database was when it was at rest; undefined if it may not be. */
  changes: number | undefined
  /** How far it was when all were looked at. */
  reading: Reading | undefined
  /** Somebody has told of a change there, which `reading` may not know. */
  isTold: boolean
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
  ...{ name, table: undefined, places: undefined, place: undefined, changes: undefined, reading: undefined },
  ...{ isTold: false, missing: 0, isLeft: false, visit: undefined },
})

/** It is, or may be, another database of the same name. */
export function forgetPlace(berth: Berth): void {
  berth.places = undefined // it remembers a revision
  berth.place = undefined
  berth.changes = undefined
  berth.reading = undefined
}

/** Whether a sweep has found it elsewhere than it was left. */
export const isNews = ({ place, changes }: Berth, { life, changes: now }: Reading): boolean =>
  changes !== now || (place?.life !== undefined && place.life !== life)

/** The number before the dash of a sequence, as in `Reading`. */
export const changesAt = (seq: Seq): number => parseInt(seqText(seq)) || 0
