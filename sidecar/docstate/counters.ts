import { Histogram } from '../core/histogram.ts'
import { noWrites } from '../couch/writer.ts'
import type { WriteResult } from './write-doc.ts'
import type { UndeclaredCount } from './undeclared.ts'
import type { Outcome } from './types.ts'

/** Of the documents of one type and state. */
export class HandlerCounters {
  /** On their way now, the oldest first, and since when by the clock's ticks: they wait, run, or are being saved. */
  readonly underWay = new Map<object, number>()
  /** Handlers that run now. */
  running = 0
  /** Handlers whose time was up, and that have not ended since. */
  overdue = 0
  /** Handlers that have ended. */
  readonly runs: Record<Outcome['kind'], number> = {
    ...{ next: 0, nothing: 0, failed: 0, rejected: 0, 'claim-lost': 0, stopped: 0 },
  }
  readonly took = new Histogram()
  readonly claims: Record<WriteResult['kind'], number> = { stored: 0, accepted: 0, lost: 0, refused: 0 }
  /** Taken over from workers that did not renew their claims. */
  inherited = 0
  /** What was written of it: the outcome; that it is tried again; that it has failed for good; that a person decides. */
  readonly written = { saved: 0, retry: 0, error: 0, parked: 0 }

  get inFlight(): number {
    return this.underWay.size
  }

  /** For how long the oldest is on its way; 0 without any. Milliseconds. */
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
 * What engines have done, as plain numbers, whether or not they are read. They only go up, but for those of what is
 * under way, and outlive the engines that add to them: of databases that come and go there is one for all.
 */
export class Counters {
  /** Rows of the feed. */
  changes = 0
  /** Times the feed could not be read, and times it began again from its start. */
  readonly feed = { broken: 0, rewound: 0 }
  /** Documents that were reached for, and another worker had won. */
  inVain = 0
  readonly conflicts = { resolved: 0, stuck: 0 }
  readonly writes = noWrites()
  /** Documents in states that their machines do not declare, by database, as of its last list: only where there are any. */
  readonly undeclared = new Map<string, readonly UndeclaredCount[]>()
  readonly #handlers = new Map<string, TypeAndState & { readonly counts: HandlerCounters }>()
  /** So that nothing is put together for each document. */
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

  /** What is counted of this one counts as of that pair from now on. */
  countAs(one: TypeAndState, pair: TypeAndState): void {
    this.#known.set(one, this.of(pair))
  }

  /** Of every type and state that was asked for. */
  handlers(): Iterable<TypeAndState & { readonly counts: HandlerCounters }> {
    return this.#handlers.values()
  }
}
