import { onAbort } from '../core/on-abort.ts'
import type { Member } from './worker-documents.ts'
import type { Registry } from './registry.ts'
import { createRendezvous } from './rendezvous.ts'

/** Where a document waits: what decides who has a handler for it. */
export interface TypeAndState {
  readonly type: string
  readonly state: string
}

/** The part that one worker has in the documents of a database. */
export interface Partition {
  /** Whether this worker is the one to take a document. Advice: nothing breaks if all workers think so, or none does. */
  isOurs(pair: TypeAndState, docId: string): boolean
  /** The same, without knowing type and state; undefined where it matters, since the workers are not all alike. */
  isOursAnywhere(docId: string): boolean | undefined
  /** Whether others are there who do the same as this worker. */
  hasEquals(): boolean
  /** Calls when it may have changed, until the signal. */
  onChange(listener: () => void, signal: AbortSignal): void
}

/** Of the only worker. */
export const everything: Partition = {
  isOurs: () => true,
  isOursAnywhere: () => true,
  hasEquals: () => false,
  onChange: () => undefined,
}

export interface PartitioningOptions {
  readonly registry: Registry
  readonly role: string
  /** Id of this worker. Always counted among those who are there. */
  readonly self: string
  /** Whether a worker has a handler for this type and state. */
  readonly serves: (member: Member, database: string, pair: TypeAndState) => boolean
  /** How many workers may have documents of this type and state; without one, of any in this database. Default all. */
  readonly most?: (database: string, pair?: TypeAndState) => number
  /** Whether a worker has a handler for this type and state in any database. Default all have. */
  readonly servesAnywhere?: (member: Member, pair: TypeAndState) => boolean
  readonly signal: AbortSignal
}

/** Divides the documents of each database among the workers of a role. */
export interface Partitioning {
  of(database: string): Partition
  /** The same for a database that is not divided: all of one type and state is one worker's. */
  whole(database: string): Partition
  /** Resolves when the other workers are known: before that each takes everything. */
  readonly known: Promise<void>
  /** Calls when the parts may have changed, until the signal. */
  onChange(this: void, listener: () => void, signal: AbortSignal): void
}

export interface Shares {
  /** Which of how many this worker is, among those that have a handler for it, or the first `most` of them. */
  shareOf(this: void, pair: TypeAndState, most: number): { readonly index: number; readonly of: number }
}

/** The same for all workers. */
const inOrder = (ids: readonly string[]): string[] => [...ids].sort()

export function createPartitioning(options: PartitioningOptions): Partitioning & Shares {
  const { registry, role, self, serves, servesAnywhere = () => true, most = () => Infinity, signal } = options
  const listeners = new Set<() => void>()
  /** By database, type and state, for those that are divided: they are few. */
  const responsible = new Map<string, (docId: string) => string | undefined>()
  const among = new Map<string, (name: string) => string | undefined>()
  let others: readonly Member[] = []
  /** Of all, where all say the same of themselves. */
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

  /** Those that have a handler for it; if they are too many the first in an order that all agree on. */
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
      /** Whose a document is among all workers, where none is left out of what is in this database. */
      const ofEquals = () => (mostHere > others.length ? ofAll : undefined)
      return {
        hasEquals: () => ofEquals() !== undefined,
        isOursAnywhere(docId) {
          if (others.length === 0) return true
          const whose = ofEquals()
          return whose && whose(docId) === self
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
