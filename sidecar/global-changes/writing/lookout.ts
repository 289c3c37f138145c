import type { DatabaseEvent } from '../documents.ts'

/** How far a database was when it was looked at. */
export interface Reading {
  /** `instance_start_time`: another one is another database of the same name. */
  readonly life: string
  /** The number before the dash of its `update_seq`: it grows with every change, whatever node is asked. */
  readonly changes: number
}

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
