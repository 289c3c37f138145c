/** What is known of a build of an index, while it runs and for a while after. */
export interface Job {
  readonly isRunning: boolean
  /** Where the database was when it was decided; a number, as `changes` in `Reading`. */
  readonly seq: number
  /** When it began or ended, by the clock's ticks. */
  readonly at: number
  /** After a failure: not before this, by the clock's ticks. */
  readonly notBefore: number
}

export interface Situation {
  readonly job: Job | undefined
  /** Where the database is now. */
  readonly seq: number
  /** How far the index is behind that; only asked where it matters. */
  readonly lag: () => Promise<number>
  /** Builds that run. */
  readonly active: number
  /** How many of any kind may run. */
  readonly batch: number
  /** How many may, if those beyond `batch` are of indexes that are little behind. */
  readonly total: number
  readonly maxIncrementalUpdates: number
  readonly batchSize: number
  readonly delayMs: number
  readonly now: number
}

export type Decision =
  | { readonly kind: 'start' }
  /** Up to where the database is. */
  | { readonly kind: 'fresh' }
  /** It is decided again when that build has ended. */
  | { readonly kind: 'running' }
  | { readonly kind: 'wait'; readonly ms: number }
  /** There is no channel for it; after so long it could do with one of the others, if any. */
  | { readonly kind: 'full'; readonly ms?: number }

/**
 * Whether to build an index now: the table of `ken_server:should_start_job/2`, which says no for four reasons. Here they
 * are told apart, so that each is asked again when it can have changed, and not after a minute.
 */
export async function decide(situation: Situation): Promise<Decision> {
  const { job, seq, active, batch, total, batchSize, delayMs, now, maxIncrementalUpdates } = situation
  if (job?.isRunning) return { kind: 'running' }
  if (job && job.notBefore > now) return { kind: 'wait', ms: job.notBefore - now }
  if (!job) {
    if (active < batch) return { kind: 'start' }
    return active < total && (await situation.lag()) < maxIncrementalUpdates ? { kind: 'start' } : { kind: 'full' }
  }
  const news = seq - job.seq
  if (news === 0 && job.notBefore === 0) return { kind: 'fresh' }
  const isSmall = news < maxIncrementalUpdates
  const idleMs = now - job.at
  if (active < batch && (news >= batchSize || idleMs > delayMs)) return { kind: 'start' }
  if (active < total && isSmall && idleMs > delayMs) return { kind: 'start' }
  const leftMs = Math.max(1, delayMs - idleMs)
  if (active < batch) return { kind: 'wait', ms: leftMs }
  return active < total && isSmall && idleMs <= delayMs ? { kind: 'full', ms: leftMs } : { kind: 'full' }
}
