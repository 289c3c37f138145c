import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { seqFrom, type Seq } from '../../couch/documents.ts'
import { follow } from '../../feed/follow.ts'
import { parseLine, type Source } from '../../feed/source.ts'

export interface OwnFeedsOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly random: Random
  /** Maximum number of feeds: each is a connection. */
  readonly most: number
  readonly onUpdated: (database: string) => void
}

interface OwnFeed {
  readonly done: Promise<void>
  readonly stop: () => void
}

/** Follows the databases that changed last, each by its own feed, if the server has no feed of all databases. */
export class OwnFeeds {
  readonly #options: OwnFeedsOptions
  /** In the order of their last change. */
  readonly #feeds = new Map<string, OwnFeed>()
  readonly #ending = new Set<Promise<void>>()

  constructor(options: OwnFeedsOptions) {
    this.#options = options
  }

  /** Follows a database that has changed. Above the maximum, the feed that has been quiet longest ends. */
  touch(name: string): void {
    const feed = this.#feeds.get(name) ?? this.#follow(name)
    this.#feeds.delete(name)
    this.#feeds.set(name, feed)
    if (this.#feeds.size > this.#options.most) this.#drop(this.#feeds.keys().next().value!)
  }

  /** Ends all feeds. Resolves when no connection is open. */
  async close(): Promise<void> {
    for (const name of [...this.#feeds.keys()]) this.#drop(name)
    await Promise.all(this.#ending)
  }

  #drop(name: string): void {
    const feed = this.#feeds.get(name)
    if (!feed) return
    this.#feeds.delete(name)
    this.#ending.add(feed.done)
    void feed.done.finally(() => this.#ending.delete(feed.done))
    feed.stop()
  }

  #follow(name: string): OwnFeed {
    const { couch, clock, random, onUpdated } = this.#options
    const stopping = new AbortController()
    const { signal } = stopping
    const run = async () => {
      for await (const event of follow(
        { source: seqsOf(couch, name), from: { seq: seqFrom('now') }, clock, random },
        signal,
      )) {
        if (signal.aborted) return
        if (event.kind === 'rows') {
          onUpdated(name)
          this.touch(name)
        }
        if (event.kind === 'broken' && event.error.code === 'not_found') return this.#drop(name) // a sweep reports it
      }
    }
    return { done: run(), stop: () => stopping.abort() }
  }
}

/** The changes of a database, as sequences only. */
const seqsOf = (couch: Couch, name: string): Source<{ seq: Seq }> => {
  const database = couch.db(name)
  return {
    name: `GET /${name}/_changes`,
    life: (place, signal) => database.life(place, { signal }),
    open: (query, signal) => database.changes({ ...query }, signal),
    parse: (request, line) => parseLine(request, line, ({ seq }) => ({ seq })),
  }
}
