import { troubleInWords, type CouchErrorCode } from '../couch/couch-errors.ts'
import { createCompiler } from '../deploy/compiler.ts'
import type { Engine } from '../docstate/engine.ts'
import { HandlerLimits } from '../docstate/handler-limits.ts'
import { Lease } from '../docstate/claims/lease.ts'
import { Quarantine } from '../docstate/quarantine.ts'
import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { createPartitioning } from '../workers/partitioning.ts'
import { capabilitiesOf, hasCapability, hasCapabilityAnywhere } from './capabilities.ts'
import { databaseMetrics, handlerMetrics, memoryMetrics, visitMetrics } from './database-metrics.ts'
import { createHandlerTables } from './handler-tables.ts'
import { patternOf, patternsOf } from './patterns.ts'
import { together } from '../core/together.ts'
import { Counters } from '../docstate/counters.ts'
import { isGlob } from '../core/glob.ts'
import { createVisitedDatabases, type VisitedDatabases, type VisitedDatabasesOptions } from './visited-databases.ts'
import { followDatabase } from './follow.ts'

/** Runs the user's and the sidecar's own handlers. Follows named databases, visits databases that match a glob. */
export function databasesFeature(platform: Platform): Feature {
  const { config, couch, worker, byteBudget, live, clock, random, log, signal } = platform
  const engines = new Map<string, Engine>()
  const patterns = patternsOf(config)
  const compiler = createCompiler()
  const counters = createDatabaseCounters(patterns)
  const tables = createHandlerTables({ ...platform, couch: couch.work, compiler })
  const partitioning = createPartitioning({
    ...{ ...worker, most: tables.most, signal },
    ...{ serves: hasCapability, servesAnywhere: hasCapabilityAnywhere },
  })
  const { shareOf } = partitioning
  const control = couch.work.db(config.controlDb)
  const limits = new HandlerLimits({ control, shareOf, clock, random, log, signal })
  partitioning.onChange(() => limits.changed(), signal)
  live.onChange('handlers', ({ handlers }) => limits.set(handlers), signal)
  const served = serveDatabases({
    ...platform,
    ...{ couch: couch.work, compiler, workers: worker.registry, worker: worker.self },
    ...{ controlDb: config.controlDb, databases: patterns, jobOf: tables.of, countsOf: counters.of, engines },
    ...{ graceMs: config.graceMs, reads: config.reads },
    lease: new Lease({ leaseMs: config.leaseMs, clock, log }),
    quarantine: new Quarantine(clock),
    ...{ partitioning, limits, control },
    async whenSet(until) {
      await live.whenKnown(until)
      limits.set(live.of('handlers').handlers)
    },
  })
  const sources = { engines, databaseCounters: counters.all, paused: () => limits.paused, clock }
  return {
    run: (until) => served.run(until),
    metrics: [
      metricsOf(databaseMetrics, sources),
      metricsOf(visitMetrics, () => served.visited.counts()),
      metricsOf(handlerMetrics, sources),
      metricsOf(memoryMetrics, byteBudget),
    ],
    problems: () => problemsOf(engines),
    capabilities: capabilitiesOf(config, tables),
  }
}

/**
 * Counters of databases, by the names and globs of the settings. All databases of a glob share one set of counters, and
 * no count is lost when a database is deleted.
 */
interface DatabaseCounters {
  /** Counters of a database, which must match a name or glob. */
  readonly of: (database: string) => Counters
  /** All counters, by name or glob. */
  readonly all: ReadonlyMap<string, Counters>
}

export function createDatabaseCounters(patterns: readonly string[]): DatabaseCounters {
  const all = new Map(patterns.map((pattern) => [pattern, new Counters()]))
  return { all, of: (database) => all.get(patternOf(database, patterns))! }
}

/** Maximum databases named per problem; the others are counted. */
const NAMED = 3

/** The databases whose feed is not followed, with the reason, as sentences. */
export function problemsOf(engines: ReadonlyMap<string, Engine>): string[] {
  if (engines.size === 0) return ['waiting for CouchDB']
  const byTrouble = new Map<CouchErrorCode | undefined, string[]>()
  for (const engine of engines.values()) {
    const { database, following, trouble } = engine.health()
    if (!following) byTrouble.set(trouble, [...(byTrouble.get(trouble) ?? []), database])
  }
  return [...byTrouble].map(([trouble, databases]) => {
    const more = databases.length - NAMED
    const named = databases.slice(0, NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
    const [subject, verb] = databases.length === 1 ? ['the feed', 'is'] : ['the feeds', 'are']
    return `${subject} of ${named} ${verb} not followed${trouble ? `: ${troubleInWords[trouble]} (${trouble})` : ' yet'}`
  })
}

export interface ServeOptions extends Omit<VisitedDatabasesOptions, 'except'> {
  readonly controlDb: string
  /** Names and globs. */
  readonly databases: readonly string[]
  /** Engines of the databases that are served now, by name. */
  readonly engines: Map<string, Engine>
  /** Counters that the engine of a database adds to. */
  readonly countsOf: (database: string) => Counters
}

interface Served {
  /** Runs until the signal aborts. If one database fails by a bug, all others end, and its error is thrown. */
  run(signal: AbortSignal): Promise<void>
  readonly visited: VisitedDatabases
}

/** Follows the databases that the settings name. Visits all that match a glob, including databases created later. */
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
