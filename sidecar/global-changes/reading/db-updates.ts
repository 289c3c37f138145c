import type { Logger } from 'pino'
import { createAlarms } from '../../core/alarms.ts'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import type { Seq } from '../../couch/documents.ts'
import type { Events } from '../../events/channels.ts'
import { createHistory } from './history.ts'
import { Hub } from './hub.ts'
import { NewestFirst } from './newest-first.ts'
import { Reader } from './reader.ts'
import type { Reading } from './reading.ts'
import type { Viewer } from './update.ts'

export interface DbUpdatesOptions {
  /** For the one feed. */
  readonly couch: Couch
  /** For what readers ask. Default: the same. */
  readonly answering?: Couch
  /** The database that the events are written into. */
  readonly name: string
  readonly events: Events
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface DbUpdatesCounts {
  /** Open now. */
  readonly readers: number
  /** That have come over the one feed. */
  readonly rows: number
  /** That readers have read because they were not at the end. */
  readonly pages: number
  /** How often a reader did not take what came, and had to read it again. */
  readonly slow: number
}

export interface OpenOptions {
  readonly viewer: Viewer
  readonly since: Seq
  /** The last row first, and none that come later; `since` is nothing then. */
  readonly descending: boolean
}

/** What has happened to which database, for any number of readers. */
export interface DbUpdates {
  /** Follows the feed until the signal aborts. Once only. */
  run(signal: AbortSignal): Promise<void>
  open(options: OpenOptions): Reading
  /** See `History`. */
  state(signal: AbortSignal): Promise<string>
  counts(): DbUpdatesCounts
}

export function createDbUpdates(options: DbUpdatesOptions): DbUpdates {
  const { couch, answering = couch, name, events, clock, random, log } = options
  const history = createHistory(answering, name)
  const hub = new Hub({ couch, name, history: createHistory(couch, name), events, clock, random, log })
  const alarms = createAlarms(clock)
  let started = false
  let pages = 0
  let slow = 0
  const onPage = () => void (pages += 1)
  const onSlow = () => void (slow += 1)

  return {
    async run(signal) {
      if (started) throw new Error(`the feed of ${name} was started twice`)
      started = true
      await hub.run(signal)
    },
    open({ viewer, since, descending }) {
      if (descending) return new NewestFirst({ history, viewer, onPage })
      const unsettledUntil = () => hub.unsettledUntil
      const onClose = () => void hub.readers.delete(reader)
      const told = { unsettledUntil, onPage, onSlow, onClose }
      const reader = new Reader({ history, viewer, since, alarms, clock, random, ...told })
      hub.readers.add(reader)
      return reader
    },
    state: (signal) => history.state(signal),
    counts: () => ({ readers: hub.readers.size, rows: hub.rows, pages, slow }),
  }
}
