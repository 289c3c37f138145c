import { isoTime, type Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import type { DispatchTable } from './assess.ts'
import { pages, type Range } from './pages.ts'

export interface SweepOptions {
  readonly database: Database
  readonly table: DispatchTable
  readonly clock: Clock
  /** Documents due later than this from now are left to the next sweep. */
  readonly horizonMs: number
  /** Looks at a page of ids of one range; says whether the next page is wanted. */
  readonly look: (ids: string[], signal: AbortSignal) => Promise<boolean>
}

/** Finds every document that waits for us. Throws `CouchError`. */
export type Sweep = (signal: AbortSignal) => Promise<void>

/**
 * The list for truth, where the feed is for speed: by the view `by_state`, key `[type, state, status, at]`, all
 * documents of the handled states that are ready, claimed by somebody, or due soon. Reads ids only.
 */
export function createSweep({ database, table, clock, horizonMs, look }: SweepOptions): Sweep {
  const { registrations, machines } = table
  const handled = registrations.map(({ type, state }) => [type, state] as const)
  const timed = Object.entries(machines).flatMap(([type, machine]) =>
    Object.entries(machine).flatMap(([state, { timeout }]) => (timeout ? [[type, state] as const] : [])),
  )
  const places = new Map([...handled, ...timed].map((place) => [place.join('\0'), place])).values()
  const all = [...places]

  function* ranges(now: number): Generator<Range> {
    const horizon = isoTime(now + horizonMs)
    for (const place of all) {
      yield { startkey: [...place, 'claimed'], endkey: [...place, 'claimed', {}] }
      yield { startkey: [...place, 'ready'], endkey: [...place, 'ready', {}] }
      yield { startkey: [...place, 'retry'], endkey: [...place, 'retry', horizon] }
      yield { startkey: [...place, 'timeout'], endkey: [...place, 'timeout', horizon] }
    }
  }

  return async (signal) => {
    for (const range of ranges(clock.now())) {
      for await (const ids of pages(database, range, signal)) if (!(await look(ids, signal))) break
    }
  }
}
