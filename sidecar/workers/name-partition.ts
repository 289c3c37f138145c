import { onAbort } from '../core/on-abort.ts'
import type { Member } from './worker-documents.ts'
import type { Registry } from './registry.ts'
import { createRendezvous } from './rendezvous.ts'

/** What this worker has of things that are divided by their names. */
export interface NamePartition {
  isOurs(name: string): boolean
  /** How many divide them, this one included. */
  workers(): number
  /** Resolves when the other workers are known: before that each takes everything. */
  readonly known: Promise<void>
  /** Calls when it may have changed, until the signal. */
  onChange(listener: () => void, signal: AbortSignal): void
}

/** Of the only worker. */
export const undivided: NamePartition = {
  isOurs: () => true,
  workers: () => 1,
  known: Promise.resolve(),
  onChange: () => undefined,
}

export interface NamePartitionOptions {
  readonly registry: Registry
  readonly role: string
  /** Id of this worker. Always counted among those who are there. */
  readonly self: string
  /** Whether a worker takes part. */
  readonly takesPart: (member: Member) => boolean
  readonly signal: AbortSignal
}

/** Divides anything that has a name among the workers of a role. */
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
