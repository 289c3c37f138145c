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
  /** Whether the server may have a feed of all databases: the embedded one has none. */
  readonly mayHaveFeed: boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly tell: (event: DatabaseEvent, database: string) => void
  /** Something may have been missed, or the source is another now. */
  readonly onGap: () => void
}

const OWN_FEEDS = 50

/** Tells of changes at once: by the server's feed of all databases, or where it has none, by the feeds of some databases. */
export class Sources {
  readonly #options: SourcesOptions
  readonly #changes = new Condition()
  readonly #ownFeeds: OwnFeeds
  #hasServerFeed: boolean
  #runs = false

  constructor(options: SourcesOptions) {
    const { couch, clock, random, tell } = options
    this.#options = options
    this.#hasServerFeed = options.mayHaveFeed
    const onUpdated = (database: string) => tell('updated', database)
    this.#ownFeeds = new OwnFeeds({ couch, clock, random, most: OWN_FEEDS, onUpdated })
  }

  /** Whether the server has a feed of all databases. */
  get hasServerFeed(): boolean {
    return this.#hasServerFeed
  }

  /** These have changed, as was found without the sources: their own feeds may be worth following. */
  found(databases: readonly string[]): void {
    if (this.#runs && !this.#hasServerFeed) for (const database of databases) this.#ownFeeds.touch(database)
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { couch, mayHaveFeed, clock, random, log, tell, onGap } = this.#options
    const onThere = (isThere: boolean) => {
      this.#hasServerFeed = isThere
      this.#changes.changed()
      onGap()
    }
    this.#hasServerFeed = mayHaveFeed
    this.#runs = true
    try {
      const server = { couch, clock, random, log, onEvent: tell, onAgain: onGap, onThere }
      await Promise.all([mayHaveFeed ? followServer(server, signal) : undefined, this.#closeOwnFeeds(signal)])
    } finally {
      this.#runs = false
      await this.#ownFeeds.close()
    }
  }

  /** While the server has no such feed, the databases that a sweep finds changed are followed by their own. */
  async #closeOwnFeeds(signal: AbortSignal): Promise<void> {
    const isOver = () => signal.aborted
    while (!isOver()) {
      await this.#changes.until(() => !this.#hasServerFeed, signal).catch(() => undefined)
      await this.#changes.until(() => this.#hasServerFeed, signal).catch(() => undefined)
      await this.#ownFeeds.close()
    }
  }
}
