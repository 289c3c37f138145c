import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { Condition } from '../../core/condition.ts'
import type { Couch } from '../../couch/client.ts'
import { seqFrom, type Seq } from '../../couch/documents.ts'
import { follow } from '../../feed/follow.ts'
import { parseLine, type Source } from '../../feed/source.ts'
import { isDatabaseEvent, type DatabaseEvent } from '../event-documents.ts'
import { OwnFeeds } from './own-feeds.ts'

export interface SourcesOptions {
  readonly couch: Couch
  /** Whether the server may have a feed of all databases: the embedded server has none. */
  readonly mayHaveFeed: boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly onEvent: (event: DatabaseEvent, database: string) => void
  /** Called when events may have been missed, or the source has changed. */
  readonly onGap: () => void
}

const OWN_FEEDS = 50

/** Reports changes at once: by the server's feed of all databases or, without it, by feeds of some databases. */
export class Sources {
  readonly #options: SourcesOptions
  readonly #changes = new Condition()
  readonly #ownFeeds: OwnFeeds
  #hasServerFeed: boolean
  #runs = false

  constructor(options: SourcesOptions) {
    const { couch, clock, random, onEvent } = options
    this.#options = options
    this.#hasServerFeed = options.mayHaveFeed
    const onUpdated = (database: string) => onEvent('updated', database)
    this.#ownFeeds = new OwnFeeds({ couch, clock, random, most: OWN_FEEDS, onUpdated })
  }

  /** Whether the server has a feed of all databases. */
  get hasServerFeed(): boolean {
    return this.#hasServerFeed
  }

  /** Call this with databases that a sweep found changed: their own feeds may be worth following. */
  found(databases: readonly string[]): void {
    if (this.#runs && !this.#hasServerFeed) for (const database of databases) this.#ownFeeds.touch(database)
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { mayHaveFeed } = this.#options
    this.#hasServerFeed = mayHaveFeed
    this.#runs = true
    try {
      await Promise.all([mayHaveFeed ? this.#followServer(signal) : undefined, this.#closeOwnFeeds(signal)])
    } finally {
      this.#runs = false
      await this.#ownFeeds.close()
    }
  }

  /** Follows the server's `_db_updates` from now on, until the signal aborts. A sweep must find events that it misses. */
  async #followServer(signal: AbortSignal): Promise<void> {
    const { couch, clock, random, log, onEvent, onGap } = this.#options
    let broke = true
    const from = { seq: seqFrom('now') }
    for await (const event of follow({ source: dbUpdatesOf(couch), from, clock, random }, signal)) {
      switch (event.kind) {
        case 'rows':
          for (const { event: what, database } of event.rows) if (what) onEvent(what, database)
          break
        case 'connected':
          if (!this.#hasServerFeed) this.#noteServerFeed(true)
          else if (broke) onGap()
          broke = false
          break
        case 'broken':
          broke = true
          if (event.error.code === 'not_found' && this.#hasServerFeed) {
            log.warn(missing(couch.url))
            this.#noteServerFeed(false)
          } else log.debug({ code: event.error.code, reason: event.error.message }, 'the feed _db_updates is broken')
          break
        case 'restarted':
        case 'caught-up':
        case 'left':
      }
    }
  }

  /** Call this when the server gets or loses its feed. */
  #noteServerFeed(isAvailable: boolean): void {
    this.#hasServerFeed = isAvailable
    this.#changes.changed()
    this.#options.onGap()
  }

  /** Closes the own feeds each time the server gets its feed of all databases. */
  async #closeOwnFeeds(signal: AbortSignal): Promise<void> {
    const isOver = () => signal.aborted
    while (!isOver()) {
      await this.#changes.until(() => !this.#hasServerFeed, signal).catch(() => undefined)
      await this.#changes.until(() => this.#hasServerFeed, signal).catch(() => undefined)
      await this.#ownFeeds.close()
    }
  }
}

/** One row of the server's `_db_updates`. */
interface DbUpdate {
  readonly seq: Seq
  readonly database: string
  /** Undefined for an unknown event. */
  readonly event: DatabaseEvent | undefined
}

/** The server's own `_db_updates`. Its life is that of the database `_global_changes`; 404 if that is missing. */
const dbUpdatesOf = (couch: Couch): Source<DbUpdate> => ({
  name: 'GET /_db_updates',
  life: (place, signal) => couch.db('_global_changes').life(place, { signal }),
  open: async (query, signal) => (await couch.stream({ path: '_db_updates', query, signal })).bytes,
  parse: (request, line) =>
    parseLine(request, line, ({ seq, db_name, type }) =>
      typeof db_name === 'string'
        ? { seq, database: db_name, event: isDatabaseEvent(type) ? type : undefined }
        : undefined,
    ),
})

const missing = (url: string) =>
  'the server has no feed of all databases: its database _global_changes is missing. Changes are found by the ' +
  `databases’ own feeds and by polling, which costs more. To add it, as an admin: curl -X PUT ${url}/_global_changes`
