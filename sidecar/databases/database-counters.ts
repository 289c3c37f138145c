import { Counters } from '../docstate/counters.ts'
import { patternOf } from './patterns.ts'

/**
 * What is counted in databases, by the names and globs of the settings: few numbers, however many databases match a
 * glob, and none is lost with a database that goes.
 */
export interface DatabaseCounters {
  /** For a database that one of them stands for. */
  readonly of: (database: string) => Counters
  /** By name or glob. */
  readonly all: ReadonlyMap<string, Counters>
}

export function createDatabaseCounters(patterns: readonly string[]): DatabaseCounters {
  const all = new Map(patterns.map((pattern) => [pattern, new Counters()]))
  return { all, of: (database) => all.get(patternOf(database, patterns))! }
}
