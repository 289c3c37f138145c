import { Counters } from '../docstate/counters.ts'
import { patternOf } from './patterns.ts'

/**
 * Counters of databases, by the names and globs of the settings. All databases of a glob share one set of counters, and
 * no count is lost when a database is deleted.
 */
export interface DatabaseCounters {
  /** Counters of a database, which must match a name or glob. */
  readonly of: (database: string) => Counters
  /** All counters, by name or glob. */
  readonly all: ReadonlyMap<string, Counters>
}

export function createDatabaseCounters(patterns: readonly string[]): DatabaseCounters {
  const all = new Map(patterns.map((pattern) => [pattern, new Counters()]))
  return { all, of: (database) => all.get(patternOf(database, patterns))! }
}
