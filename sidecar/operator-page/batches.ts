/** Orders for many documents. They continue while no page is open, and a page shows the progress of each. */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { z } from 'zod'
import { isoTime, type Clock } from '../core/clock.ts'
import { withTimeout } from '../core/timeout.ts'
import { untilAny } from '../core/until-any.ts'
import { isCouchError, troubleInWords } from '../couch/couch-errors.ts'
import { HttpError } from '../http/http-errors.ts'
import { carryOut, noSums, orderFrom, type OrderContext, type Order, type Sums } from './actions.tsx'
import type { Received } from './other-workers.ts'

/** An order for all documents that a filter selects. */
export type BatchOrder = Extract<Order, { readonly filter: unknown }>

export interface Batch {
  readonly id: string
  readonly order: BatchOrder
  readonly by: string
  /** Start, ISO 8601. */
  readonly at: string
  /** Maximum number of documents that the order selected at its start. */
  readonly most: number
  /** Results so far. */
  readonly sums: Readonly<Sums>
  readonly status: (typeof STATUSES)[number]
  /** The worker that carries out the order; undefined: this one. */
  readonly worker?: string | undefined
  /** True if a stop was requested here and the batch still runs. */
  readonly isStopping?: boolean | undefined
}

const STATUSES = ['running', 'done', 'stopped', 'broken'] as const
const count = z.number().int().nonnegative()

/** A batch as heartbeats carry it to other workers. */
const SentBatch = z.object({
  ...{ id: z.string(), by: z.string(), at: z.iso.datetime(), most: count, status: z.enum(STATUSES) },
  /** Fields of the order, as a form sends them. */
  fields: z.record(z.string(), z.string()),
  sums: z.object({
    ...{ done: count, changed: count, refused: count, why: z.string().optional() },
    undo: z.record(z.string(), z.string()).optional(),
  }),
})

export interface BatchesOptions extends Pick<OrderContext, 'couch' | 'controlDb'> {
  readonly clock: Clock
  readonly log: Logger
  /** Ends all batches. Written documents stay, and the same order continues the work. */
  readonly signal: AbortSignal
  /** Called at the end of each batch, for any reason. */
  readonly onOver: () => void
}

/** Maximum running batches: more would take CouchDB from the handlers. */
const MOST_RUNNING = 4
const KEPT = 50
/** Maximum wait of a page for the end, milliseconds. Then the page shows the progress. */
const PATIENCE_MS = 700
/** Limits for heartbeats: the number of latest batches, and the characters of a reason. */
const MOST_SENT = 8
const MOST_CHARACTERS = 300
/** How long heartbeats carry a stop request, milliseconds. Other workers receive it within seconds. */
const STOPPING_MS = 60_000

interface Entry {
  batch: Batch
  readonly stopping: AbortController
}

/** The batches of this process, and those in heartbeats of other workers. A restart loses the process's own. */
export class Batches {
  readonly #options: BatchesOptions
  readonly #kept = new LRUCache<string, Entry>({ max: KEPT })
  /** Stop requests for batches of other workers. */
  readonly #stopping = new LRUCache<string, true>({ max: KEPT, ttl: STOPPING_MS })

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  /** Running batches of this worker, and of other workers' heartbeats. */
  running(received: readonly Received[]): readonly Batch[] {
    return [...this.#own, ...this.#others(received)].filter(({ status }) => status === 'running')
  }

  get(id: string, received: readonly Received[]): Batch | undefined {
    return this.#kept.get(id)?.batch ?? this.#others(received).find((batch) => batch.id === id)
  }

  /** Stops a batch; written documents stay. A batch of another worker stops within seconds. */
  stop(id: string): void {
    if (this.#kept.has(id)) this.stopOwn([id])
    else this.#stopping.set(id, true)
  }

  /** @param ids of batches of any worker, unchecked */
  stopOwn(ids: readonly unknown[]): void {
    for (const id of ids) this.#kept.get(id as string)?.stopping.abort(new Error('stopped by an operator'))
  }

  /** The latest batches, for heartbeats to other workers. */
  get toSend(): readonly z.infer<typeof SentBatch>[] {
    return this.#own.slice(0, MOST_SENT).map(({ order, sums, ...batch }) => ({
      ...batch,
      fields: fieldsOf(order),
      sums: { ...sums, why: sums.why?.slice(0, MOST_CHARACTERS), undo: sums.undo && withoutUndefined(sums.undo) },
    }))
  }

  /** Ids of batches that other workers should stop. */
  get stopping(): readonly string[] {
    return [...this.#stopping.keys()]
  }

  get #own(): readonly Batch[] {
    return [...this.#kept.values()].map(({ batch }) => batch)
  }

  #others(received: readonly Received[]): readonly Batch[] {
    return received.flatMap(({ worker, data: { batches } }) => {
      const all = Array.isArray(batches) ? (batches as readonly unknown[]) : []
      return all.flatMap((value) => {
        const batch = batchFrom(value)
        return batch ? { ...batch, worker, isStopping: this.#stopping.has(batch.id) } : []
      })
    })
  }

  /** Starts a batch, and waits a little for its end. Throws `HttpError` if too many batches run. */
  async begin(
    order: BatchOrder,
    { names, by, most }: Pick<OrderContext, 'names' | 'by'> & Pick<Batch, 'most'>,
  ): Promise<Batch> {
    const { couch, controlDb, clock, log, signal, onOver } = this.#options
    if (this.running([]).length >= MOST_RUNNING) {
      throw new HttpError(
        429,
        'too_many_requests',
        `${MOST_RUNNING} orders are running already. Wait for one of them, or stop it.`,
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

  async #carryOut(order: BatchOrder, context: OrderContext, sums: Sums): Promise<Batch['status']> {
    try {
      await carryOut(order, context, sums)
      return 'done'
    } catch (thrown) {
      if (context.signal.aborted) return 'stopped'
      if (!isCouchError(thrown)) this.#options.log.error({ err: thrown }, 'an order of an operator failed')
      sums.why = isCouchError(thrown)
        ? `${troubleInWords[thrown.code]} (${thrown.code}).`
        : 'Internal error: see the log of the sidecar.'
      return 'broken'
    }
  }
}

const withoutUndefined = (fields: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )

/** Fields from which `orderFrom` makes the same order. */
const fieldsOf = (order: BatchOrder): Record<string, string> =>
  withoutUndefined({ verb: order.verb, ...order.filter, ...('of' in order && order.of) })

/** Reads a batch from another worker's heartbeat; undefined if it is invalid. */
function batchFrom(value: unknown): Batch | undefined {
  const { data } = SentBatch.safeParse(value)
  if (!data) return undefined
  const { fields, sums, ...batch } = data
  try {
    const order = orderFrom(fields)
    return 'filter' in order ? { ...batch, order, sums: { why: undefined, undo: undefined, ...sums } } : undefined
  } catch (thrown) {
    if (thrown instanceof HttpError) return undefined
    throw thrown
  }
}
