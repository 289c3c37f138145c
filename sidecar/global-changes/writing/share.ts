import type { Member } from '../../workers/documents.ts'
import type { Registry } from '../../workers/registry.ts'
import { createResponsible } from '../../workers/responsible.ts'
import { BUCKETS } from './ledger.ts'

/** Which buckets of databases are this worker's. */
export interface Share {
  buckets(): ReadonlySet<number>
  /** Resolves when it is known who is there: before that everybody takes everything. */
  readonly known: Promise<void>
  /** Calls when it has changed, until the signal. */
  onChange(listener: () => void, signal: AbortSignal): void
}

const everyBucket = Array.from({ length: BUCKETS }, (_, bucket) => bucket)
const ALL: ReadonlySet<number> = new Set(everyBucket)

/** Of the only worker. */
export const allBuckets: Share = { buckets: () => ALL, known: Promise.resolve(), onChange: () => undefined }

export interface ShareOptions {
  readonly registry: Registry
  readonly role: string
  /** Id of this worker. Always counted among those who are there. */
  readonly self: string
  /** Whether a worker writes events into the same database. */
  readonly writes: (member: Member) => boolean
  readonly signal: AbortSignal
}

/** Divides the buckets among the workers of a role. */
export function createShare({ registry, role, self, writes, signal }: ShareOptions): Share {
  const listeners = new Set<() => void>()
  let buckets = ALL

  const known = new Promise<void>((resolve) => {
    registry.subscribe(
      role,
      ({ members }) => {
        const others = members.filter((member) => member.id !== self && writes(member)).map(({ id }) => id)
        const responsible = createResponsible([self, ...others])
        buckets = new Set(everyBucket.filter((bucket) => responsible(`bucket ${bucket}`) === self))
        if (members.some(({ id }) => id === self)) resolve()
        for (const listener of listeners) listener()
      },
      signal,
    )
  })

  return {
    known,
    buckets: () => buckets,
    onChange(listener, signal) {
      if (signal.aborted) return
      listeners.add(listener)
      signal.addEventListener('abort', () => listeners.delete(listener), { once: true })
    },
  }
}
