import { Histogram } from '../core/histogram.ts'
import { noWrites } from '../couch/writer.ts'
import type { WriteResult } from './write-doc.ts'
import type { UndeclaredCount } from './undeclared.ts'
import type { Outcome } from './types.ts'

/** Counters for the documents of one type and state. */
export class HandlerCounters {
  /** Attempts that wait, run or are being saved, oldest first, each with its start in clock ticks. */
  readonly underWay = new Map<object, number>()
  /** Handlers that run now. */
  running = 0
  /** Handlers that still run after their timeout. */
  overdue = 0
  /** Handlers that have ended, by outcome. */
  readonly runs: Record<Outcome['kind'], number> = {
    ...{ next: 0, nothing: 0, failed: 0, rejected: 0, 'claim-lost': 0, stopped: 0 },
  }
  readonly took = new Histogram()
  /** Time from the read of a document to the start of its handler, milliseconds. */
  readonly waited = new Histogram()
  readonly claims: Record<WriteResult['kind'], number> = { stored: 0, accepted: 0, lost: 0, refused: 0 }
  /** Entries taken over from workers that did not renew their claims. */
  inherited = 0
  /** Records written: outcomes, retries, final failures, and documents parked for an operator. */
  readonly written = { saved: 0, retry: 0, error: 0, parked: 0 }

  get inFlight(): number {
    return this.underWay.size
  }

  /** Age of the oldest attempt, milliseconds; 0 without any. */
  oldestMs(ticks: number): number {
    const [since = ticks] = this.underWay.values()
    return ticks - since
  }
}

interface TypeAndState {
  readonly type: string
  readonly state: string
}

/**
 * Counts what engines do, also if nothing reads the counters. They only increase, except those of work under way. They
 * outlive engines: databases that come and go share one instance.
 */
export class Counters {
  /** Rows read from the feed. */
  changes = 0
  /** Number of failed reads of the feed, and of restarts from its beginning. */
  readonly feed = { broken: 0, rewound: 0 }
  /** Attempts for documents that another worker had won. */
  contended = 0
  readonly conflicts = { resolved: 0, stuck: 0 }
  readonly writes = noWrites()
  /** Documents in undeclared states at the last resync, by database; only databases that have any. */
  readonly undeclared = new Map<string, readonly UndeclaredCount[]>()
  readonly #handlers = new Map<string, TypeAndState & { readonly counts: HandlerCounters }>()
  /** A cache: avoids building a name for each document. */
  readonly #known = new WeakMap<TypeAndState, HandlerCounters>()

  of(pair: TypeAndState): HandlerCounters {
    const known = this.#known.get(pair)
    if (known) return known
    const { type, state } = pair
    const name = `${type}\0${state}`
    const handler = this.#handlers.get(name) ?? { type, state, counts: new HandlerCounters() }
    this.#handlers.set(name, handler)
    this.#known.set(pair, handler.counts)
    return handler.counts
  }

  /** Counts `one` under `pair` from now on. */
  countAs(one: TypeAndState, pair: TypeAndState): void {
    this.#known.set(one, this.of(pair))
  }

  /** Counters of every type and state that `of` was called with. */
  handlers(): Iterable<TypeAndState & { readonly counts: HandlerCounters }> {
    return this.#handlers.values()
  }
}
