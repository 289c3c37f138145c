import { createCompiler } from '../deploy/compiler.ts'
import type { Engine } from '../docstate/engine.ts'
import { Quarantine } from '../docstate/quarantine.ts'
import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { createPartitioning } from '../workers/partitioning.ts'
import { capabilitiesOf, hasCapability } from './capabilities.ts'
import { createDatabaseCounters } from './database-counters.ts'
import { databaseMetrics } from './database-metrics.ts'
import { createHandlerTables } from './handler-tables.ts'
import { handlerMetrics } from './handler-metrics.ts'
import { memoryMetrics } from './memory-metrics.ts'
import { patternsOf } from './patterns.ts'
import { serveDatabases } from './serve.ts'
import { visitMetrics } from './visit-metrics.ts'

/** Runs the handlers, the user's and the sidecar's own: follows the databases that are named, visits those of globs. */
export function databasesFeature(platform: Platform): Feature {
  const { config, couch, worker, byteBudget, clock, signal } = platform
  const engines = new Map<string, Engine>()
  const patterns = patternsOf(config)
  const compiler = createCompiler()
  const counters = createDatabaseCounters(patterns)
  const tables = createHandlerTables({ ...platform, couch: couch.work, compiler })
  const served = serveDatabases({
    ...platform,
    ...{ couch: couch.work, compiler, workers: worker.registry, worker: worker.self },
    ...{ controlDb: config.controlDb, databases: patterns, jobOf: tables.of, countsOf: counters.of, engines },
    ...{ leaseMs: config.leaseMs, graceMs: config.graceMs, reads: config.reads, quarantine: new Quarantine(clock) },
    partitioning: createPartitioning({ ...worker, serves: hasCapability, signal }),
  })
  const sources = { engines, databaseCounters: counters.all }
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

/** The databases whose feed is not followed. */
export function problemsOf(engines: ReadonlyMap<string, Engine>): string[] {
  if (engines.size === 0) return ['waiting for CouchDB']
  return [...engines.values()].flatMap((engine) => {
    const { database, following, trouble } = engine.health()
    return following ? [] : [`the feed of ${database} is not followed${trouble ? `: ${trouble}` : ' yet'}`]
  })
}
