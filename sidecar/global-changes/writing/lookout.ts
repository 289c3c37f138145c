import { filesAfter, isBehind } from '../../couch/shard-seqs.ts'
import type { Reading } from '../../couch/survey.ts'
import type { DatabaseEvent } from '../event-documents.ts'

/**
 * What written events report about a database; `undefined` if it does not exist. With `changes` below zero it is
 * *unsure*: a `created` may be written. That `created` is for this life, for an unknown one if `life` is empty, or for
 * one that has ended (`GONE`).
 */
export type Known = Reading | undefined

export const unsure = (read: Reading | undefined): Reading => ({ life: read?.life ?? '', changes: -1 })

/** A life that ended before it was read: a later database of this name has another life. */
export const GONE: Reading = { life: 'gone', changes: -1 }

export const isSure = (known: Known): known is Reading => known !== undefined && known.changes >= 0

/** The life of `_dbs`, which is in no list of databases. In CouchDB 2 it is the life of all databases. */
const OF_THE_NODE = '0'

const noteOf = (read: Reading | undefined): Reading => (read ? unsure(read) : GONE)

const isSame = (known: Known, now: Reading): known is Reading => known?.life === now.life
const isAnother = (known: Known, now: Reading) => known !== undefined && known.life !== '' && !isSame(known, now)

/** Position up to which changes were reported; 0 for a restored older copy. */
const reportedOf = (known: Known, now: Reading): number =>
  isSame(known, now) && !isBehind(now, known) ? Math.max(known.changes, 0) : 0

/** Whether a file is beyond its reported position: on a cluster, another copy may have a lower total. */
const isFurther = (known: Known, now: Reading): boolean =>
  isSame(known, now) &&
  known.changes > 0 &&
  Object.entries(now.files ?? {}).some(([uuid, seq]) => seq > (known.files?.[uuid] ?? seq))

/** The events that a sweep must write: the difference between the recorded and the current state. */
export function eventsBetween(known: Known, now: Reading | undefined): readonly DatabaseEvent[] {
  if (!now) return known ? ['deleted'] : []
  return [
    ...(isAnother(known, now) ? (['deleted'] as const) : []),
    ...(isSame(known, now) && isSure(known) ? [] : (['created'] as const)),
    ...(now.changes > reportedOf(known, now) || isFurther(known, now) ? (['updated'] as const) : []),
  ]
}

/**
 * Chooses which of the reported events are written: the first list, then the second. A feed reports late, in any order,
 * and sometimes only half of a re-creation. So the database is read just before, and the reading decides.
 *
 * - A `deleted` without a `created`, while the recorded life continues, belongs to an earlier life: it is left out.
 * - A database without a `created` gets one with its first event: otherwise its deletion might never be reported.
 * - If the reading finds no database, no `deleted` is added: the feed reports it, or a sweep.
 */
export function eventsToWrite(
  known: Known,
  read: Reading | undefined,
  reported: ReadonlySet<DatabaseEvent>,
): readonly (readonly DatabaseEvent[])[] {
  const [deleted, created] = [reported.has('deleted'), reported.has('created')]
  const living = (isCreated: boolean): readonly DatabaseEvent[] => [
    ...(isCreated ? (['created'] as const) : []),
    ...(reported.has('updated') ? (['updated'] as const) : []),
  ]
  if (!read) return deleted ? [living(created), ['deleted']] : [living(created)]
  const isKnown = isSame(known, read)
  const wasDeleted = isKnown ? deleted && created : deleted || isAnother(known, read)
  const isCreatedReported = isKnown ? isSure(known) : known !== undefined || read.life === OF_THE_NODE
  const after = living(created || wasDeleted || !isCreatedReported)
  return wasDeleted ? [['deleted'], after] : [after]
}

/** What to record before these events are written, in case the result stays unknown; undefined for nothing. */
export function noteBefore(
  known: Known,
  read: Reading | undefined,
  written: ReadonlySet<DatabaseEvent>,
): Reading | undefined {
  if (known?.life) return isSure(known) ? undefined : known // from an earlier attempt, whose record may not be stored
  return written.has('created') || (!read && written.has('updated')) ? noteOf(read) : undefined
}

/** What to record after these events are written, with the reading from before. A sweep finds the rest. */
export function knownAfter(known: Known, read: Reading | undefined, written: ReadonlySet<DatabaseEvent>): Known {
  if (!read) return written.has('deleted') ? undefined : (known ?? GONE)
  if (!isSame(known, read) && !written.has('created')) return known
  const before = isSame(known, read) && !written.has('deleted') && !isBehind(read, known) ? known : undefined
  const reported = reportedOf(before, read)
  return {
    life: read.life,
    changes: written.has('updated') ? Math.max(read.changes, reported) : reported,
    seq: read.seq,
    files: filesAfter(read, before),
  }
}
