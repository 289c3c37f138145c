import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { seqFrom } from '../../couch/documents.ts'
import { follow } from '../../feed/follow.ts'
import { parseLine, type Source } from '../../feed/source.ts'

export interface OwnFeedsOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly random: Random
  /** The most feeds at once: each is a connection. */
  readonly most: number
  readonly onUpdated: (database: string) => void
}

/** Where the server has no feed of all databases: those of the databases that changed last, each by its own. */
export class OwnFeeds {
  readonly #options: OwnFeedsOptions
  /** In the order in which they changed. */
  readonly #feeds = new Map<string, AbortController>()

  constructor(options: OwnFeedsOptions) {
    this.#options = options
  }

  /** A database that has changed. If it is one too many, the one that has been still for the longest goes. */
  touch(name: string): void {
    const known = this.#feeds.get(name)
    this.#feeds.delete(name)
    this.#feeds.set(name, known ?? this.#begin(name))
    if (this.#feeds.size > this.#options.most) this.drop(this.#feeds.keys().next().value!)
  }

  drop(name: string): void {
    this.#feeds.get(name)?.abort()
    this.#feeds.delete(name)
  }

  close(): void {
    for (const name of [...this.#feeds.keys()]) this.drop(name)
  }

  #begin(name: string): AbortController {
    const ending = new AbortController()
    void this.#run(name, ending.signal)
    return ending
  }

  async #run(name: string, signal: AbortSignal): Promise<void> {
    const { couch, clock, random, onUpdated } = this.#options
    const options = { source: seqsOf(couch, name), from: { seq: seqFrom('now') }, clock, random }
    for await (const event of follow(options, signal)) {
      if (event.kind === 'rows') {
        onUpdated(name)
        if (this.#feeds.has(name)) this.touch(name)
      }
      if (event.kind === 'broken' && event.error.code === 'not_found') return this.drop(name) // a sweep will tell
    }
  }
}

/** The changes of a database, without saying which. */
const seqsOf = (couch: Couch, name: string): Source<{ seq: ReturnType<typeof seqFrom> }> => {
  const database = couch.db(name)
  return {
    name: `GET /${name}/_changes`,
    life: async (signal) => String((await database.info({ signal })).instance_start_time),
    open: (query, signal) => database.changes({ ...query }, signal),
    parse: (request, line) => parseLine(request, line, ({ seq }) => ({ seq })),
  }
}
