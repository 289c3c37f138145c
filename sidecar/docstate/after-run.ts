import type { Machine } from '../../ddocs/machine.ts'

const WEEK_MS = 7 * 24 * 3_600_000

/**
 * What follows the state `run` of documents that the sidecar itself makes for a run: they are kept for a week, or four if they have failed, and
 * deleted in `over`.
 */
export const AFTER_RUN = {
  done: { next: { over: 'sidecar' }, timeout: { afterMs: WEEK_MS, next: 'over' } },
  over: { mode: 'safe', next: {} },
  error: { next: { run: 'sidecar', over: 'sidecar' }, timeout: { afterMs: 4 * WEEK_MS, next: 'over' } },
} as const satisfies Machine
