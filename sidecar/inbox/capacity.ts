import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { BY_STATE, DDOC, countRow } from '../docstate/finding/pages.ts'

/** Limits the devices that wait for confirmation, and all stored documents of strangers. */
export interface Capacity {
  /**
   * Takes room for one more document of this type. False if no room is left. Throws `CouchError`.
   *
   * @param hasShare called once half of the room is taken: whether the sender may take some of the rest
   */
  take(type: StrangersType, hasShare: () => boolean): Promise<boolean>
}

/** Types of documents that strangers may write. */
export type StrangersType = 'device' | 'confirm'

export interface CapacityOptions {
  readonly database: Database
  readonly limit: number
  readonly clock: Clock
  readonly log: Logger
}

/** Lifetime of a count. Documents that were accepted since then are added to the count. */
const COUNTED_MS = 10_000
const WAITING = ['new', 'confirming']
/** States of unconfirmed devices. Confirm documents count in any state. */
const UNCONFIRMED = [...WAITING, 'expired', 'error', 'forgotten']
/** Maximum number of stored documents, as a multiple of `limit`. They stay until they are forgotten. */
const KEPT = 10

interface Counted {
  waiting: number
  kept: number
}

/** Counts all devices and confirm documents, however they came into the control database. */
export function createCapacity({ database, limit, clock, log }: CapacityOptions): Capacity {
  let counted: Promise<Counted> | undefined
  let countedAt = 0
  let full = false

  async function count(): Promise<Counted> {
    const of = (type: StrangersType) => ({ startkey: [type], endkey: [type, {}], group_level: 2 })
    const devices = await database.view(DDOC, BY_STATE, countRow, of('device'))
    const confirms = await database.view(DDOC, BY_STATE, countRow, of('confirm'))
    const among = (states: readonly string[]) => sumOf(devices.filter(({ key: [, state] }) => states.includes(state)))
    return { waiting: among(WAITING), kept: among(UNCONFIRMED) + sumOf(confirms) }
  }

  function recount(): Promise<Counted> {
    const counting = count()
    counting.catch(() => (counted = undefined)) // the next call counts again
    countedAt = clock.ticks()
    return (counted = counting)
  }

  return {
    async take(type, hasShare) {
      const isFresh = counted && clock.ticks() - countedAt < COUNTED_MS
      const count = await (isFresh ? counted! : recount())
      const { waiting, kept } = count
      const wasFull = full
      full = waiting >= limit || kept >= limit * KEPT
      if (full && !wasFull) log.warn({ waiting, kept, limit }, 'the inbox is full: too many devices wait, or are kept')
      const isScarce = kept >= (limit * KEPT) / 2 || (type === 'device' && waiting >= limit / 2)
      const isFull = kept >= limit * KEPT || (type === 'device' && waiting >= limit)
      if (isFull || (isScarce && !hasShare())) return false
      count.kept += 1
      if (type === 'device') count.waiting += 1
      return true
    },
  }
}

const sumOf = (rows: readonly { readonly value: number }[]): number => rows.reduce((sum, { value }) => sum + value, 0)
