import { together } from '../core/together.ts'
import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { ROLE, type Member } from '../workers/documents.ts'
import { createNamePartition } from '../workers/name-partition.ts'
import type { Registry } from '../workers/registry.ts'
import { indexMetrics } from './index-metrics.ts'
import { indexesRoute } from './indexes-route.ts'
import { createIndexes } from './indexes.ts'
import { keepNotes, readNotes } from './notes.ts'

/** Builds every index when its database has changed, and says how far each is. */
export function indexesFeature(platform: Platform): Feature {
  const { config, couch, live, worker, adminOnly, clock, log, signal } = platform
  const indexes = createIndexes({
    ...platform,
    couch: couch.indexes,
    patient: couch.builds,
    settings: live.of('ken'),
    partition: createNamePartition({ ...worker, takesPart: buildsIndexes, signal }),
  })
  live.onChange('ken', (settings) => indexes.change(settings), signal)
  const notes = { indexes, database: couch.work.db(config.controlDb), worker: config.name, clock, log }
  const parts = [
    (until: AbortSignal) => live.whenKnown(until).then(() => indexes.run(until)),
    (until: AbortSignal) => keepNotes(notes, until),
  ]
  const database = couch.answers.db(config.controlDb)
  const readOthers = (until: AbortSignal) => readNotes(database, othersIn(worker.registry, config.name), until)
  return {
    run: (until) => together(parts, until),
    routes: [indexesRoute({ adminOnly, indexes, worker: config.name, notes: readOthers, clock })],
    metrics: [metricsOf(indexMetrics, { indexes, clock })],
    capabilities: { indexes: true },
  }
}

/** Whether a worker builds indexes. */
export const buildsIndexes = ({ options }: Member): boolean => options.indexes === true

const othersIn = (registry: Registry, self: string) =>
  (registry.members(ROLE)?.members ?? [])
    .filter((member) => member.id !== self && buildsIndexes(member))
    .map(({ id }) => id)
