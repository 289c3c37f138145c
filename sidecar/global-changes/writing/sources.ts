import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { Condition } from '../../core/condition.ts'
import type { Couch } from '../../couch/client.ts'
import type { DatabaseEvent } from '../event-documents.ts'
import { OwnFeeds } from './own-feeds.ts'
import { followServer } from './server-feed.ts'

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
    const { couch, mayHaveFeed, clock, random, log, onEvent, onGap } = this.#options
    const onAvailable = (isAvailable: boolean) => {
      this.#hasServerFeed = isAvailable
      this.#changes.changed()
      onGap()
    }
    this.#hasServerFeed = mayHaveFeed
    this.#runs = true
    try {
      const server = { couch, clock, random, log, onEvent, onAgain: onGap, onAvailable }
      await Promise.all([mayHaveFeed ? followServer(server, signal) : undefined, this.#closeOwnFeeds(signal)])
    } finally {
      this.#runs = false
      await this.#ownFeeds.close()
    }
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
