import { STATUSES } from '../../../ddocs/lib/status.ts'
import type { Registration } from '../types.ts'
import { isSinceNow } from './since.ts'

/** A range of `by_state` in one type and state. */
export interface StatusRange {
  readonly status: string
  /** Upper limit of the time; `{}` for all. */
  readonly until: unknown
  /** The range is read if documents have one of these statuses. */
  readonly among: readonly string[]
}

export interface Waiting {
  readonly registration: Pick<Registration, 'options'> | undefined
  /** Whether the state has a timeout. */
  readonly hasEnd: boolean
  readonly paused: boolean
  /** Whether the state was renamed. */
  readonly isRenamed?: boolean
}

/** Ranges of documents that wait for their handler or for the end of their state. Times after `due` are left out. */
export function rangesOf({ registration, hasEnd, paused, isRenamed }: Waiting, due: string): StatusRange[] {
  if (isRenamed) return STATUSES.map((status) => ({ status, until: {}, among: [status] }))
  const isNew = registration !== undefined && isSinceNow(registration)
  const runs = registration !== undefined && !paused
  const ranges = [
    { status: 'claimed', until: {} },
    // Documents without a stored end get one, even while their handler is paused.
    ...(runs || hasEnd ? [{ status: 'ready', until: {}, among: isNew ? ['ready', 'timeout'] : ['ready'] }] : []),
    ...(runs ? [{ status: 'retry', until: due }] : []),
    // Documents whose state ends before a worker begins. With `since: 'now'`, the `ready` list includes the new ones.
    { status: 'timeout', until: runs && !isNew ? {} : due },
    ...(hasEnd ? ['handled', 'failed', 'discarded'].map((status) => ({ status, until: due })) : []),
  ]
  return ranges.map((range) => ({ among: [range.status], ...range }))
}
