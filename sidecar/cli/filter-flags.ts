import { STATUSES, type Status } from '../../ddocs/lib/status.ts'
import { parseDuration } from '../core/duration.ts'
import { ConfigError } from '../core/errors.ts'
import type { Filter } from '../docstate/operator/find.ts'

/** Which documents are meant, as flags say it. */
export interface FilterFlags {
  readonly type?: string
  readonly state?: string
  readonly status?: string
  readonly code?: string
  readonly olderThan?: string
  readonly limit?: string
}

/** For `Command.option`. */
export const FILTER_FLAGS = [
  ['--type <type>', 'of this type'],
  ['--state <state>', 'in this state, or failed in it'],
  ['--status <statuses>', `how they stand, by commas: ${STATUSES.join(', ')} (default failed,parked,retry)`],
  ['--code <code>', 'whose failure has this code'],
  ['--older-than <time>', 'that have stood so for this time, such as 90s, 30m, 2h, 7d'],
  ['--limit <count>', 'so many at most'],
] as const

export interface ReadFilter extends Filter {
  /** Infinite without one. */
  readonly limit: number
  /** Whether any flag says which are meant. */
  readonly isGiven: boolean
}

/** Throws `ConfigError` with all faults. */
export function readFilter(command: string, flags: FilterFlags): ReadFilter {
  const { type, state, status, code, olderThan, limit } = flags
  const faults: string[] = []
  const statuses = status?.split(',').map((one) => one.trim())
  const unknown = statuses?.filter((one) => !(STATUSES as readonly string[]).includes(one)) ?? []
  if (unknown.length > 0) faults.push(`--status: expected some of ${STATUSES.join(', ')}, got ${unknown.join(', ')}`)
  const olderThanMs = olderThan === undefined ? undefined : parseDuration(olderThan)
  if (olderThan !== undefined && olderThanMs === undefined)
    faults.push(`--older-than: expected a time such as 90s, 30m, 2h or 7d, got ${olderThan}`)
  const most = limit === undefined ? Infinity : Number(limit)
  if (limit !== undefined && !(Number.isSafeInteger(most) && most > 0))
    faults.push(`--limit: expected a whole number from 1, got ${limit}`)
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `${command}: ${fault}`))
  const isGiven = [type, state, status, code, olderThan].some((flag) => flag !== undefined)
  return { type, state, statuses: statuses as readonly Status[] | undefined, code, olderThanMs, limit: most, isGiven }
}
