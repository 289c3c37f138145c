import { together } from '../core/together.ts'
import type { Counters } from '../docstate/counters.ts'
import type { Engine } from '../docstate/engine.ts'
import { isGlob } from '../core/glob.ts'
import { createVisitedDatabases, type VisitedDatabases, type VisitedDatabasesOptions } from './visited-databases.ts'
import { followDatabase } from './follow.ts'

export interface ServeOptions extends Omit<VisitedDatabasesOptions, 'except'> {
  readonly controlDb: string
  /** Names and globs. */
  readonly databases: readonly string[]
  /** Of the databases that are served now. */
  readonly engines: Map<string, Engine>
  /** Where its engine counts what it does. */
  readonly countsOf: (database: string) => Counters
}

export interface Served {
  /** Until the signal aborts. If one of them breaks off, which only a mistake of ours does, all end, and it is thrown. */
  run(signal: AbortSignal): Promise<void>
  readonly visited: VisitedDatabases
}

/** The databases that the settings name are followed, for ever; those that come to match a glob are visited. */
export function serveDatabases(options: ServeOptions): Served {
  const { controlDb, databases, jobOf, engines, countsOf, log } = options
  const named = new Set([controlDb, ...databases.filter((pattern) => !isGlob(pattern))])
  const visited = createVisitedDatabases({ ...options, databases: databases.filter(isGlob), except: named })

  const follow = (name: string) => (signal: AbortSignal) => {
    const onEngine = (engine: Engine) => void engines.set(name, engine)
    const own = { ...jobOf(name), name, counts: countsOf(name), log: log.child({ db: name }) }
    return followDatabase({ ...options, ...own, onEngine }, signal).finally(() => engines.delete(name))
  }

  return { visited, run: (signal) => together([...[...named].map(follow), visited.run], signal) }
}
