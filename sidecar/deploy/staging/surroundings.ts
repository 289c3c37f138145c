import { hostname } from 'node:os'
import type { Random } from '../../core/backoff.ts'
import { systemClock, type Clock } from '../../core/clock.ts'
import type { Holder } from './record.ts'

/** What a deploy that takes its time is at. */
export type Progress = { readonly database: string } &
  /** Of several. */
  (
    | { readonly kind: 'database'; readonly number: number; readonly of: number }
    | { readonly kind: 'watching'; readonly holder: Holder; readonly forMs: number }
    /** Changes of the database that are in the new index, and that are to be. */
    | { readonly kind: 'warming'; readonly ddoc: string; readonly done: number; readonly total: number }
    /** CouchDB does not answer; it is asked again. */
    | { readonly kind: 'trouble'; readonly reason: string }
  )

/** What all of it needs. */
export interface Surroundings {
  readonly clock: Clock
  readonly random: Random
  /** Of who deploys, for people. */
  readonly name: string
  /** A holder without a heartbeat for so long is dead. */
  readonly deadAfterMs: number
  /** Goes on in its place also where it lives. */
  readonly takeOver: boolean
  readonly onProgress: (progress: Progress) => void
  readonly signal: AbortSignal
}

/** The defaults: no progress is reported, and a holder is gone after 10 s. */
export const surroundingsFrom = (given: Partial<Surroundings>): Surroundings => ({
  clock: given.clock ?? systemClock,
  random: given.random ?? Math.random,
  name: given.name ?? `${hostname()}, process ${process.pid}`,
  deadAfterMs: given.deadAfterMs ?? 10_000,
  takeOver: given.takeOver ?? false,
  onProgress: given.onProgress ?? (() => undefined),
  signal: given.signal ?? new AbortController().signal,
})
