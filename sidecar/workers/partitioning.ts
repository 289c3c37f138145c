import { onAbort } from '../core/on-abort.ts'
import type { Member } from './worker-documents.ts'
import type { Registry } from './registry.ts'
import { createRendezvous } from './rendezvous.ts'

/** Type and state of a document: they decide which workers have a handler for it. */
export interface TypeAndState {
  readonly type: string
  readonly state: string
}

/** One worker's partition of the documents of a database. */
export interface Partition {
  /** Whether this worker should take a document. Advice only: nothing breaks if it is true on all workers or none. */
  isOurs(pair: TypeAndState, docId: string): boolean
  /** Like `isOurs`, without type and state; undefined if they matter, because the workers differ. */
  isOursAnywhere(docId: string): boolean | undefined
  /** Whether other workers do the same work as this worker. */
  hasEquals(): boolean
  /** Calls the listener when the partition may have changed, until the signal aborts. */
  onChange(listener: () => void, signal: AbortSignal): void
}

/** Partition of a single worker. */
export const everything: Partition = {
  isOurs: () => true,
  isOursAnywhere: () => true,
  hasEquals: () => false,
  onChange: () => undefined,
}

export interface PartitioningOptions {
  readonly registry: Registry
  readonly role: string
  /** Id of this worker, which always counts as a member. */
  readonly self: string
  /** Whether a worker has a handler for this type and state. */
  readonly serves: (member: Member, database: string, pair: TypeAndState) => boolean
  /** Maximum workers for this type and state; without `pair`, the lowest maximum in this database. Default: all. */
  readonly most?: (database: string, pair?: TypeAndState) => number
  /** Whether a worker has a handler for this type and state in any database. Default: every worker has. */
  readonly servesAnywhere?: (member: Member, pair: TypeAndState) => boolean
  readonly signal: AbortSignal
}

/** Divides the documents of each database among the workers of a role. */
export interface Partitioning {
  of(database: string): Partition
  /** Partition of an undivided database: one worker takes all documents of one type and state. */
  whole(database: string): Partition
  /** Resolves when the other workers are known. Until then, each worker takes everything. */
  readonly known: Promise<void>
  /** Calls the listener when partitions may have changed, until the signal aborts. */
  onChange(this: void, listener: () => void, signal: AbortSignal): void
}

export interface Shares {
  /** Position of this worker among the workers with a handler for it, and their number, at most `most`. */
  shareOf(this: void, pair: TypeAndState, most: number): { readonly index: number; readonly of: number }
}

/** An order that is the same on all workers. */
const inOrder = (ids: readonly string[]): string[] => [...ids].sort()

export function createPartitioning(options: PartitioningOptions): Partitioning & Shares {
  const { registry, role, self, serves, servesAnywhere = () => true, most = () => Infinity, signal } = options
  const listeners = new Set<() => void>()
  /** By database, type and state; only for divided databases, which are few. */
  const responsible = new Map<string, (docId: string) => string | undefined>()
  const among = new Map<string, (name: string) => string | undefined>()
  let others: readonly Member[] = []
  /** Rendezvous of all workers, set if all have the same options. */
  let ofAll: ((docId: string) => string | undefined) | undefined

  const update = (members: readonly Member[]) => {
    others = members.filter(({ id }) => id !== self)
    responsible.clear()
    among.clear()
    const areAlike =
      members.length > 1 &&
      others.length < members.length &&
      new Set(members.map(({ options }) => JSON.stringify(options))).size === 1
    ofAll = areAlike ? createRendezvous([self, ...others.map(({ id }) => id)]) : undefined
    for (const listener of listeners) listener()
  }
  const known = new Promise<void>((resolve) => {
    registry.subscribe(
      role,
      ({ members }) => {
        update(members)
        if (members.some(({ id }) => id === self)) resolve()
      },
      signal,
    )
  })

  function responsibleFor(database: string, pair: TypeAndState): (docId: string) => string | undefined {
    const key = `${database}\0${pair.type}\0${pair.state}`
    const known = responsible.get(key)
    if (known) return known
    const made = responsibleAmong(idsOf(database, pair, most(database, pair)))
    responsible.set(key, made)
    return made
  }

  /** Ids of workers with a handler for it. If they are more than `most`: the first ones in the common order. */
  function idsOf(database: string, pair: TypeAndState, most: number): readonly string[] {
    const ids = [self, ...others.filter((member) => serves(member, database, pair)).map(({ id }) => id)]
    return ids.length <= most ? ids : inOrder(ids).slice(0, most)
  }

  function responsibleAmong(ids: readonly string[]): (name: string) => string | undefined {
    const key = JSON.stringify(ids)
    const made = among.get(key) ?? createRendezvous(ids)
    among.set(key, made)
    return made
  }

  function onChange(listener: () => void, signal: AbortSignal): void {
    if (signal.aborted) return
    listeners.add(listener)
    onAbort(signal, () => listeners.delete(listener))
  }

  return {
    known,
    onChange,
    shareOf(pair, most) {
      const ids = [self, ...others.filter((member) => servesAnywhere(member, pair)).map(({ id }) => id)]
      return { index: inOrder(ids).indexOf(self), of: Math.min(ids.length, most) }
    },
    of(database) {
      const mostHere = most(database)
      /** Rendezvous of all workers, if every handler in this database may run on all of them. */
      const ofEquals = () => (mostHere > others.length ? ofAll : undefined)
      return {
        hasEquals: () => ofEquals() !== undefined,
        isOursAnywhere(docId) {
          if (others.length === 0) return true
          const rendezvous = ofEquals()
          return rendezvous && rendezvous(docId) === self
        },
        isOurs: (pair, docId) => others.length === 0 || responsibleFor(database, pair)(docId) === self,
        onChange,
      }
    },
    whole: (database) => ({
      hasEquals: () => false,
      isOursAnywhere: () => (others.length === 0 ? true : ofAll && ofAll(database) === self),
      isOurs: (pair) =>
        others.length === 0 || responsibleAmong(idsOf(database, pair, most(database)))(database) === self,
      onChange,
    }),
  }
}
