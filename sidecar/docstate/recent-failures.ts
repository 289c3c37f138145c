/** The newest stack of each failure: kept in memory for the operator's page. Documents hold no stacks: they replicate. */
import { z } from 'zod'
import { isoTime, type Clock } from '../core/clock.ts'

const RecentFailure = z.object({
  /** ISO 8601. */
  at: z.iso.datetime(),
  /** The document whose handler failed. */
  database: z.string(),
  id: z.string(),
  type: z.string(),
  /** State of the document when its handler ran. */
  state: z.string(),
  code: z.string(),
  /** Message and stack frames. */
  stack: z.string(),
})

export type RecentFailure = Readonly<z.infer<typeof RecentFailure>>

/** Handlers and codes. */
const KEPT = 10
/** Maximum length of a stack in characters: stacks travel with heartbeats. */
const MAX_STACK = 1500

export class RecentFailures {
  readonly #clock: Pick<Clock, 'now'>
  #failures: readonly RecentFailure[] = []

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** One for each handler and code, the newest first; ten at most. */
  get all(): readonly RecentFailure[] {
    return this.#failures
  }

  add(failure: Omit<RecentFailure, 'at'>): void {
    const added = { ...failure, at: isoTime(this.#clock.now()), stack: failure.stack.slice(0, MAX_STACK) }
    this.#failures = [added, ...this.#failures.filter((one) => !isAlike(one, added))].slice(0, KEPT)
  }
}

/** Failures of one handler with one code. */
type Kind = Pick<RecentFailure, 'type' | 'state' | 'code'>

const isAlike = (one: Kind, other: Kind): boolean =>
  one.type === other.type && one.state === other.state && one.code === other.code

/** The failure of this document if it is among them, or else the newest one alike. */
export function failureLike<F extends RecentFailure>(
  failures: readonly F[],
  wanted: Kind & Pick<RecentFailure, 'database' | 'id'>,
): F | undefined {
  const alike = failures.filter((one) => isAlike(one, wanted)).toSorted((one, other) => other.at.localeCompare(one.at))
  return alike.find(({ database, id }) => database === wanted.database && id === wanted.id) ?? alike[0]
}

/** The failures that another worker reports; none if the value has another shape. */
export const recentFailuresFrom = (value: unknown): readonly RecentFailure[] =>
  z.array(RecentFailure).safeParse(value).data ?? []
