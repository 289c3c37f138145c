import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { BY_STATE, DDOC, countRow } from '../docstate/finding/pages.ts'

/** How many devices may wait for somebody to confirm them. */
export interface Room {
  /**
   * True if there is room for one more, which is counted. Throws `CouchError`.
   *
   * @param hasShare asked where half of the room is taken: whether he who brings it may have some of the rest
   */
  take(hasShare: () => boolean): Promise<boolean>
}

export interface RoomOptions {
  readonly database: Database
  readonly limit: number
  readonly clock: Clock
  readonly log: Logger
}

/** So long one count is believed: what was let in since is added to it. */
const COUNTED_MS = 10_000
const WAITING = ['new', 'confirming']

/** Counts all devices, however they came into the control database: the confirmed and the failed ones do not count. */
export function createRoom({ database, limit, clock, log }: RoomOptions): Room {
  let counted: Promise<number> | undefined
  let countedAt = 0
  let letIn = 0
  let full = false

  async function count(): Promise<number> {
    const devices = { startkey: ['device'], endkey: ['device', {}], group_level: 2 }
    const rows = await database.view(DDOC, BY_STATE, countRow, devices)
    const waiting = rows.filter(({ key: [, state] }) => WAITING.includes(state))
    return waiting.reduce((sum, { value }) => sum + value, 0)
  }

  function recount(): Promise<number> {
    const counting = count()
    counting.catch(() => (counted = undefined)) // the next one asks again
    countedAt = clock.ticks()
    letIn = 0
    return (counted = counting)
  }

  return {
    async take(hasShare) {
      const isFresh = counted && clock.ticks() - countedAt < COUNTED_MS
      const waiting = (await (isFresh ? counted! : recount())) + letIn
      const wasFull = full
      full = waiting >= limit
      if (full && !wasFull) log.warn({ waiting, limit }, 'the inbox takes no more devices: too many wait')
      if (full || (waiting >= limit / 2 && !hasShare())) return false
      letIn += 1
      return true
    },
  }
}
