import { STATUSES } from '../../../ddocs/lib/status.ts'
import type { Registration } from '../types.ts'
import { isSinceNow } from './since.ts'

/** Rows of `by_state` of one type and state. */
export interface StatusRange {
  readonly status: string
  /** Up to this time: `{}` for all. */
  readonly until: unknown
  /** There is something to read where documents have one of these statuses. */
  readonly among: readonly string[]
}

export interface Waiting {
  readonly registration: Pick<Registration, 'options'> | undefined
  /** Whether the state has a timeout. */
  readonly hasEnd: boolean
  readonly paused: boolean
  /** The state has another name now. */
  readonly isRenamed?: boolean
}

/** Where documents stand that wait: for their handler, or for the end of their state. What is due after `due` is left out. */
export function rangesOf({ registration, hasEnd, paused, isRenamed }: Waiting, due: string): StatusRange[] {
  if (isRenamed) return STATUSES.map((status) => ({ status, until: {}, among: [status] }))
  const isNew = registration !== undefined && isSinceNow(registration)
  const runs = registration !== undefined && !paused
  const ranges = [
    { status: 'claimed', until: {} },
    // What has no end written down gets one, also while its handler is paused.
    ...(runs || hasEnd ? [{ status: 'ready', until: {}, among: isNew ? ['ready', 'timeout'] : ['ready'] }] : []),
    ...(runs ? [{ status: 'retry', until: due }] : []),
    // Whose state ends, and no worker has begun with it. Of what is new the list of `ready` tells.
    { status: 'timeout', until: runs && !isNew ? {} : due },
    ...(hasEnd ? ['handled', 'failed', 'discarded'].map((status) => ({ status, until: due })) : []),
  ]
  return ranges.map((range) => ({ among: [range.status], ...range }))
}
