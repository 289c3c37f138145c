import { STATUSES, type Status } from '../../ddocs/lib/status.ts'
import { parseDuration } from '../core/duration.ts'
import { ConfigError } from '../core/errors.ts'
import { AGELESS, type Filter } from '../docstate/operator/find.ts'

/** The flags that select documents. */
export interface FilterFlags {
  readonly type?: string
  readonly state?: string
  readonly status?: string
  readonly code?: string
  readonly olderThan?: string
  readonly limit?: string
}

/** Arguments of `Command.option`. */
export const FILTER_FLAGS = [
  ['--type <type>', 'documents of this type'],
  ['--state <state>', 'in this state, or failed in it'],
  [
    '--status <statuses>',
    `with one of these statuses, separated by commas: ${STATUSES.join(', ')} (default: failed,parked,retry)`,
  ],
  ['--code <code>', 'whose failure has this code'],
  ['--older-than <time>', 'that have had their status for this time, such as 90s, 30m, 2h, 7d'],
  ['--limit <count>', 'at most this many'],
] as const

export interface ReadFilter extends Filter {
  /** Infinity without the flag. */
  readonly limit: number
  /** Whether a flag selects documents. */
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
  const ageless = AGELESS.filter((status) => olderThan !== undefined && statuses?.includes(status))
  if (ageless.length > 0)
    faults.push(`--older-than: documents do not record since when they are ${ageless.join(' or ')}`)
  const most = limit === undefined ? Infinity : Number(limit)
  if (limit !== undefined && !(Number.isSafeInteger(most) && most > 0))
    faults.push(`--limit: expected a whole number from 1, got ${limit}`)
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `${command}: ${fault}`))
  const isGiven = [type, state, status, code, olderThan].some((flag) => flag !== undefined)
  return { type, state, statuses: statuses as readonly Status[] | undefined, code, olderThanMs, limit: most, isGiven }
}
