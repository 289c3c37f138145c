import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { Condition } from '../../core/condition.ts'
import { untilAny } from '../../core/until-any.ts'
import type { Couch } from '../../couch/client.ts'
import { followDbs } from './dbs-feed.ts'
import type { DatabaseEvent } from '../documents.ts'
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
  /** Whether it is known that this database was made. */
  readonly isKnown: (database: string) => boolean
  /** Something may have been missed, or the source is another now. */
  readonly onGap: () => void
}

const OWN_FEEDS = 50

/** Whoever tells of a change when it happens: the server's feed of all databases, or where it has none, what there is. */
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
      await Promise.all([mayHaveFeed ? followServer(server, signal) : undefined, this.#standIn(signal)])
    } finally {
      this.#runs = false
      await this.#ownFeeds.close()
    }
  }

  /** While the server has no such feed. */
  async #standIn(signal: AbortSignal): Promise<void> {
    const { couch, clock, random, tell, isKnown, onGap } = this.#options
    const isOver = () => signal.aborted
    while (!isOver()) {
      await this.#changes.until(() => !this.#hasServerFeed, signal).catch(() => undefined)
      if (isOver()) return
      const ending = new AbortController()
      const onChange = (database: string, deleted: boolean) => {
        if (!isKnown(database)) tell('created', database)
        if (deleted) tell('deleted', database)
        else if (!isKnown(database)) this.#ownFeeds.begin(database)
      }
      await untilAny([signal, ending.signal], async (until) => {
        const following = followDbs({ couch, clock, random, onChange, onAgain: onGap }, until)
        await this.#changes.until(() => this.#hasServerFeed, signal).catch(() => undefined)
        ending.abort()
        await following
      })
      await this.#ownFeeds.close()
    }
  }
}
