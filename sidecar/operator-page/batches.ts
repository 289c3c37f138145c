/** Orders that mean many documents: they go on while no page is open, and a page shows how far each of them is. */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'
import { withTimeout } from '../core/timeout.ts'
import { untilAny } from '../core/until-any.ts'
import { isCouchError, troubleInWords } from '../couch/couch-errors.ts'
import { HttpError } from '../http/http-errors.ts'
import { carryOut, noSums, type Deed, type Order, type Sums } from './actions.tsx'

/** An order for all that a filter means. */
export type BatchOrder = Extract<Order, { readonly asked: unknown }>

export interface Batch {
  readonly id: string
  readonly order: BatchOrder
  readonly by: string
  /** When it began, ISO 8601. */
  readonly at: string
  /** How many documents it meant then, at most. */
  readonly most: number
  /** So far. */
  readonly sums: Readonly<Sums>
  readonly status: 'running' | 'done' | 'stopped' | 'broken'
}

export interface BatchesOptions extends Pick<Deed, 'couch' | 'controlDb'> {
  readonly clock: Clock
  readonly log: Logger
  /** Ends all of them: what is written is written, and the same order goes on. */
  readonly signal: AbortSignal
  /** At the end of each, however it ended. */
  readonly onOver: () => void
}

/** More would take CouchDB from the handlers. */
const MOST_RUNNING = 4
const KEPT = 50
/** A page waits so long for the end, and shows how far it is then. */
const PATIENCE_MS = 700

interface Entry {
  batch: Batch
  readonly stopping: AbortController
}

/** Those of this process: another one, or the same after a restart, knows nothing of them. */
export class Batches {
  readonly #options: BatchesOptions
  readonly #kept = new LRUCache<string, Entry>({ max: KEPT })

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  /** Those that are under way. */
  get running(): readonly Batch[] {
    return [...this.#kept.values()].flatMap(({ batch }) => (batch.status === 'running' ? [batch] : []))
  }

  get(id: string): Batch | undefined {
    return this.#kept.get(id)?.batch
  }

  /** What is written stays. */
  stop(id: string): void {
    this.#kept.get(id)?.stopping.abort(new Error('stopped by an operator'))
  }

  /** Begins, and waits a little for the end. Throws `HttpError` where too many are under way. */
  async begin(
    order: BatchOrder,
    { names, by, most }: Pick<Deed, 'names' | 'by'> & Pick<Batch, 'most'>,
  ): Promise<Batch> {
    const { couch, controlDb, clock, log, signal, onOver } = this.#options
    if (this.running.length >= MOST_RUNNING) {
      throw new HttpError(
        429,
        'too_many_requests',
        `${MOST_RUNNING} are under way already: wait for one of them, or stop it.`,
      )
    }
    const stopping = new AbortController()
    const sums = noSums()
    const id = randomBytes(8).toString('hex')
    const batch: Batch = { id, order, by, at: isoTime(clock.now()), most, sums, status: 'running' }
    const entry: Entry = { batch, stopping }
    this.#kept.set(id, entry)
    const over = untilAny([signal, stopping.signal], (until) =>
      this.#carryOut(order, { couch, controlDb, names, by, clock, signal: until }, sums),
    ).then((status) => {
      entry.batch = { ...batch, status }
      log.info({ ...order, by, ...sums, undo: undefined, status }, 'an operator has acted')
      onOver()
    })
    await withTimeout(clock, PATIENCE_MS, over, signal)
    return entry.batch
  }

  async #carryOut(order: BatchOrder, deed: Deed, sums: Sums): Promise<Batch['status']> {
    try {
      await carryOut(order, deed, sums)
      return 'done'
    } catch (thrown) {
      if (deed.signal.aborted) return 'stopped'
      if (!isCouchError(thrown)) this.#options.log.error({ err: thrown }, 'an order of an operator broke off')
      sums.why = isCouchError(thrown)
        ? `${troubleInWords[thrown.code]} (${thrown.code}).`
        : 'The sidecar met an error, which is in its log.'
      return 'broken'
    }
  }
}
