/** State of a build of an index, while it runs and for a while after. */
export interface Job {
  readonly isRunning: boolean
  /** Position of the database at the decision; a number like `changes` in `Reading`. */
  readonly seq: number
  /** Start of the build or, after its end, the end. In ticks. */
  readonly at: number
  /** After a failure: time of the next try, in ticks. Otherwise 0. */
  readonly notBefore: number
}

export interface Situation {
  readonly job: Job | undefined
  /** Current position of the database. */
  readonly seq: number
  /** Changes that the index lacks; called only if the decision depends on them. */
  readonly lag: () => Promise<number>
  /** Running builds. */
  readonly active: number
  /** Any index may start a build while fewer than this run. */
  readonly batch: number
  /** An index that lacks few changes may start a build while fewer than this run. */
  readonly total: number
  readonly maxIncrementalUpdates: number
  readonly batchSize: number
  readonly delayMs: number
  readonly now: number
}

export type Decision =
  | { readonly kind: 'start' }
  /** The index is up to date. */
  | { readonly kind: 'fresh' }
  /** A build runs: decide again when it ends. */
  | { readonly kind: 'running' }
  | { readonly kind: 'wait'; readonly ms: number }
  /** No suitable channel is free. After `ms`, if set, a channel beyond `batch` suffices. */
  | { readonly kind: 'full'; readonly ms?: number }

/**
 * Decides whether to build an index now, by the table of `ken_server:should_start_job/2`, which has four reasons for a
 * refusal. This function returns the reason. So a refusal is decided again when it can change, not after a minute.
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
