import { hostname } from 'node:os'
import type { Random } from '../../core/backoff.ts'
import { systemClock, type Clock } from '../../core/clock.ts'
import type { Holder } from './record.ts'

/** Progress of a long deploy. */
export type Progress = { readonly database: string } &
  /** `database`: the deploy begins the next of several. */
  (
    | { readonly kind: 'database'; readonly number: number; readonly of: number }
    | { readonly kind: 'watching'; readonly holder: Holder; readonly forMs: number }
    /** Changes of the database that the new index has, and the total. */
    | { readonly kind: 'warming'; readonly ddoc: string; readonly done: number; readonly total: number }
    /** CouchDB does not answer; the deploy retries. */
    | { readonly kind: 'trouble'; readonly reason: string }
  )

/** Dependencies and options of all parts of a deploy. */
export interface Surroundings {
  readonly clock: Clock
  readonly random: Random
  /** Name of this process, for operators. */
  readonly name: string
  /** A holder without a heartbeat for this long is dead. */
  readonly deadAfterMs: number
  /** Takes over even from a live holder. */
  readonly takeOver: boolean
  readonly onProgress: (progress: Progress) => void
  readonly signal: AbortSignal
}

/** Fills in defaults: no progress is reported, and a silent holder is dead after 10 s. */
export const surroundingsFrom = (given: Partial<Surroundings>): Surroundings => ({
  clock: given.clock ?? systemClock,
  random: given.random ?? Math.random,
  name: given.name ?? `${hostname()}, process ${process.pid}`,
  deadAfterMs: given.deadAfterMs ?? 10_000,
  takeOver: given.takeOver ?? false,
  onProgress: given.onProgress ?? (() => undefined),
  signal: given.signal ?? new AbortController().signal,
})
