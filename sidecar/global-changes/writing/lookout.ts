import { filesAfter, isBehind } from '../../couch/shard-seqs.ts'
import type { Reading } from '../../couch/survey.ts'
import type { DatabaseEvent } from '../event-documents.ts'

/**
 * What written events say: `undefined` is a database that is not there. With `changes` below zero it is *unsure*: a
 * `created` may be written of this life, of an unknown one where `life` is empty, or of one that has ended (`GONE`).
 */
export type Known = Reading | undefined

export const unsure = (read: Reading | undefined): Reading => ({ life: read?.life ?? '', changes: -1 })

/** Of a life that had ended before it was read: what is there later is another. */
export const GONE: Reading = { life: 'gone', changes: -1 }

export const isSure = (known: Known): known is Reading => known !== undefined && known.changes >= 0

/** The life of `_dbs`, which is in no list of databases. In CouchDB 2 that of all, whose lives nothing tells apart. */
const OF_THE_NODE = '0'

const noteOf = (read: Reading | undefined): Reading => (read ? unsure(read) : GONE)

const isSame = (known: Known, now: Reading): known is Reading => known?.life === now.life
const isAnother = (known: Known, now: Reading) => known !== undefined && known.life !== '' && !isSame(known, now)

/** Up to where its changes were told. Of an older copy that was put back nothing was. */
const toldOf = (known: Known, now: Reading): number =>
  isSame(known, now) && !isBehind(now, known) ? Math.max(known.changes, 0) : 0

/** A file is further than it was when changes were told: on a cluster another copy may count less in all. */
const isFurther = (known: Known, now: Reading): boolean =>
  isSame(known, now) &&
  known.changes > 0 &&
  Object.entries(now.files ?? {}).some(([uuid, seq]) => seq > (known.files?.[uuid] ?? seq))

/** Which events a sweep has to write: what is there now, and is not known. */
export function eventsBetween(known: Known, now: Reading | undefined): readonly DatabaseEvent[] {
  if (!now) return known ? ['deleted'] : []
  return [
    ...(isAnother(known, now) ? (['deleted'] as const) : []),
    ...(isSame(known, now) && isSure(known) ? [] : (['created'] as const)),
    ...(now.changes > toldOf(known, now) || isFurther(known, now) ? (['updated'] as const) : []),
  ]
}

/**
 * Which of the events that were told are written: the first list, then the second. A feed tells late, in any order, and
 * not always both halves of a re-creation. So the database is read just before, and the reading decides. A `deleted`
 * without a `created`, of a database whose known life goes on, is of an earlier life: it is left out. A database that was
 * never told to be made is told so with its first event: without a note of it, its deletion might never be told. Of one that
 * is read as gone no `deleted` is added: the feed tells it, or a sweep.
 */
export function eventsToWrite(
  known: Known,
  read: Reading | undefined,
  told: ReadonlySet<DatabaseEvent>,
): readonly (readonly DatabaseEvent[])[] {
  const [deleted, created] = [told.has('deleted'), told.has('created')]
  const living = (isCreated: boolean): readonly DatabaseEvent[] => [
    ...(isCreated ? (['created'] as const) : []),
    ...(told.has('updated') ? (['updated'] as const) : []),
  ]
  if (!read) return deleted ? [living(created), ['deleted']] : [living(created)]
  const isKnown = isSame(known, read)
  const wasDeleted = isKnown ? deleted && created : deleted || isAnother(known, read)
  const isToldToBeMade = isKnown ? isSure(known) : known !== undefined || read.life === OF_THE_NODE
  const after = living(created || wasDeleted || !isToldToBeMade)
  return wasDeleted ? [['deleted'], after] : [after]
}

/** What is noted before these events are written, in case it stays unknown whether they were; undefined if nothing is. */
export function noteBefore(
  known: Known,
  read: Reading | undefined,
  written: ReadonlySet<DatabaseEvent>,
): Reading | undefined {
  if (known?.life) return isSure(known) ? undefined : known // of a try before, whose note may not be stored
  return written.has('created') || (!read && written.has('updated')) ? noteOf(read) : undefined
}

/** What is known once these events are written, and the database was read before. A sweep finds the rest. */
export function knownAfter(known: Known, read: Reading | undefined, written: ReadonlySet<DatabaseEvent>): Known {
  if (!read) return written.has('deleted') ? undefined : (known ?? GONE)
  if (!isSame(known, read) && !written.has('created')) return known
  const before = isSame(known, read) && !written.has('deleted') && !isBehind(read, known) ? known : undefined
  const told = toldOf(before, read)
  return {
    life: read.life,
    changes: written.has('updated') ? Math.max(read.changes, told) : told,
    seq: read.seq,
    files: filesAfter(read, before),
  }
}
