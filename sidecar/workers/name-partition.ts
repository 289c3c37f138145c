import { onAbort } from '../core/on-abort.ts'
import type { Member } from './worker-documents.ts'
import type { Registry } from './registry.ts'
import { createRendezvous } from './rendezvous.ts'

/** This worker's partition of things that are divided by name. */
export interface NamePartition {
  isOurs(name: string): boolean
  /** Number of workers that take part, including this one. */
  workers(): number
  /** Resolves when the other workers are known. Until then, each worker takes everything. */
  readonly known: Promise<void>
  /** Calls the listener when the partition may have changed, until the signal aborts. */
  onChange(listener: () => void, signal: AbortSignal): void
}

/** Partition of a single worker. */
export const undivided: NamePartition = {
  isOurs: () => true,
  workers: () => 1,
  known: Promise.resolve(),
  onChange: () => undefined,
}

export interface NamePartitionOptions {
  readonly registry: Registry
  readonly role: string
  /** Id of this worker, which always takes part. */
  readonly self: string
  /** Whether a worker takes part. */
  readonly takesPart: (member: Member) => boolean
  readonly signal: AbortSignal
}

/** Divides things among the workers of a role, by name. */
export function createNamePartition({ registry, role, self, takesPart, signal }: NamePartitionOptions): NamePartition {
  const listeners = new Set<() => void>()
  let ids: readonly string[] = [self]
  let responsible = createRendezvous(ids)

  const known = new Promise<void>((resolve) => {
    registry.subscribe(
      role,
      ({ members }) => {
        const others = members.filter((member) => member.id !== self && takesPart(member)).map(({ id }) => id)
        ids = [self, ...others]
        responsible = createRendezvous(ids)
        if (members.some(({ id }) => id === self)) resolve()
        for (const listener of listeners) listener()
      },
      signal,
    )
  })

  return {
    known,
    isOurs: (name) => ids.length === 1 || responsible(name) === self,
    workers: () => ids.length,
    onChange(listener, signal) {
      if (signal.aborted) return
      listeners.add(listener)
      onAbort(signal, () => listeners.delete(listener))
    },
  }
}
