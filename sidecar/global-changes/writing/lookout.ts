import type { Reading } from '../../couch/survey.ts'
import type { DatabaseEvent } from '../documents.ts'

/** Nothing but what is told by events that are written: `undefined` is a database that is not there. */
export type Known = Reading | undefined

/** Which events a sweep has to write: what is there now, and is not known. */
export function eventsBetween(known: Known, now: Reading | undefined): readonly DatabaseEvent[] {
  if (!now) return known ? ['deleted'] : []
  const since = known?.life === now.life ? known.changes : 0
  return [
    ...(known && known.life !== now.life ? (['deleted'] as const) : []),
    ...(known?.life === now.life ? [] : (['created'] as const)),
    ...(now.changes > since ? (['updated'] as const) : []),
  ]
}

/**
 * What is known once these events are written, of which the feed has told, and before which the database was read. What
 * they do not tell stays to be found by a sweep.
 */
export function knownAfter(known: Known, read: Reading | undefined, events: ReadonlySet<DatabaseEvent>): Known {
  if (!read) return events.has('deleted') ? undefined : known
  const isNew = known?.life !== read.life
  if (isNew && !events.has('created')) return known
  if (!events.has('updated')) return isNew ? { life: read.life, changes: 0 } : known
  return isNew || read.changes > known.changes ? read : known
}
