import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { withRetries } from '../../couch/with-retries.ts'
import type { Events } from '../../events/channels.ts'
import { follow, type Checkpoint } from '../../feed/follow.ts'
import { parseLine, type Source } from '../../feed/source.ts'
import { NOW, type History } from './history.ts'
import type { Reader } from './reader.ts'
import { updateFrom, type Update } from './update.ts'

export interface HubOptions {
  readonly couch: Couch
  readonly name: string
  readonly history: History
  readonly events: Events
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** The one feed that serves all readers. It waits for none of them. */
export class Hub {
  readonly readers = new Set<Reader>()
  /** Number of delivered rows. */
  rows = 0
  /** In clock ticks: until then, a copy may lack rows that the hub has delivered. */
  unsettledUntil = 0
  readonly #options: HubOptions
  #evenMs = 0

  constructor(options: HubOptions) {
    this.#options = options
  }

  /** Follows the feed from now on, even while its database is missing. Returns when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options
    const options = { source: this.#source(), clock, random, rowsAConnection: ROWS_A_CONNECTION }
    let rows = ROWS_A_CONNECTION
    try {
      const from = await this.#firstCheckpoint(signal)
      for (const reader of this.readers) reader.fallBehind() // a reader may have read to an end before this sequence
      for await (const event of follow({ ...options, from }, signal)) {
        if (event.kind === 'rows') {
          rows += event.rows.length
          for (const update of event.rows) this.#bring(update)
        }
        if (event.kind === 'broken') log.debug({ code: event.error.code, reason: event.error.message }, BROKEN)
        if (event.kind === 'restarted') {
          rows = 0 // the last connection may have delivered all its rows
          for (const reader of this.readers) reader.startAgain()
        }
        if (event.kind !== 'connected') continue
        if (rows < ROWS_A_CONNECTION) for (const reader of this.readers) reader.reconnected() // after a break
        rows = 0
      }
    } catch (thrown) {
      if (!signal.aborted) throw thrown
    }
  }

  /** Undefined if the database is missing: all its later rows are new. */
  async #firstCheckpoint(signal: AbortSignal): Promise<Checkpoint | undefined> {
    const { history, clock, random, log } = this.#options
    const onTrouble = (error: Error) => log.debug({ reason: error.message }, BROKEN)
    try {
      const page = await withRetries(() => history.page(NOW, 0, signal), { clock, random, signal, onTrouble })
      return { seq: page.seq }
    } catch (thrown) {
      if (isCouchError(thrown, 'not_found')) return undefined
      throw thrown
    }
  }

  #source(): Source<Update> {
    const database = this.#options.couch.db(this.#options.name)
    return {
      name: `GET /${database.name}/_changes`,
      life: async (lastSeq, signal) => {
        const life = await database.life(lastSeq, { signal })
        this.#evenMs = life.copies > 1 ? EVEN_MS : 0
        return life
      },
      open: (query, signal) => database.changes({ ...query }, signal),
      parse: (request, line) => parseLine(request, line, updateFrom),
    }
  }

  #bring(update: Update): void {
    this.rows += 1
    if (this.#evenMs > 0) this.unsettledUntil = this.#options.clock.ticks() + this.#evenMs
    for (const reader of this.readers) reader.take(update)
    if (!update.event) return
    const { event, database, account } = update.event
    this.#options.events.channel(`database:${event}`)?.publish({ database, account })
  }
}

/** In a healthy cluster, all copies have a change of one copy after this time. */
const EVEN_MS = 5000
const ROWS_A_CONNECTION = 1000
const BROKEN = 'the feed of global changes is broken'
