import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { BY_STATE, DDOC, countRow } from '../docstate/finding/pages.ts'

/** How many devices may wait to be confirmed, and how many documents of strangers there are in all. */
export interface Capacity {
  /**
   * True if there is room for one more document of this type, which is counted. Throws `CouchError`.
   *
   * @param hasShare asked where half of the room is taken: whether he who brings it may have some of the rest
   */
  take(type: StrangersType, hasShare: () => boolean): Promise<boolean>
}

/** What strangers may write. */
export type StrangersType = 'device' | 'confirm'

export interface CapacityOptions {
  readonly database: Database
  readonly limit: number
  readonly clock: Clock
  readonly log: Logger
}

/** So long one count is believed: what was let in since is added to it. */
const COUNTED_MS = 10_000
const WAITING = ['new', 'confirming']
/** Of devices: those that are not confirmed. Confirmations count in any state. */
const UNCONFIRMED = [...WAITING, 'expired', 'error', 'forgotten']
/** So many times what may wait is kept in all, until it is forgotten. */
const KEPT = 10

interface Counted {
  waiting: number
  kept: number
}

/** Counts all devices and confirmations, however they came into the control database. */
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
    counting.catch(() => (counted = undefined)) // the next one asks again
    countedAt = clock.ticks()
    return (counted = counting)
  }

  return {
    async take(type, hasShare) {
      const isFresh = counted && clock.ticks() - countedAt < COUNTED_MS
      const there = await (isFresh ? counted! : recount())
      const { waiting, kept } = there
      const wasFull = full
      full = waiting >= limit || kept >= limit * KEPT
      if (full && !wasFull) log.warn({ waiting, kept, limit }, 'the inbox is full: too many devices wait, or are kept')
      const isScarce = kept >= (limit * KEPT) / 2 || (type === 'device' && waiting >= limit / 2)
      const isFull = kept >= limit * KEPT || (type === 'device' && waiting >= limit)
      if (isFull || (isScarce && !hasShare())) return false
      there.kept += 1
      if (type === 'device') there.waiting += 1
      return true
    },
  }
}

const sumOf = (rows: readonly { readonly value: number }[]): number => rows.reduce((sum, { value }) => sum + value, 0)
