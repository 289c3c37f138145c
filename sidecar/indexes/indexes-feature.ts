import { together } from '../core/together.ts'
import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { ROLE } from '../workers/worker-documents.ts'
import { createNamePartition } from '../workers/name-partition.ts'
import type { Registry } from '../workers/registry.ts'
import { indexMetrics } from './index-metrics.ts'
import { createIndexes, type Indexes } from './indexes.ts'
import { buildsIndexes, keepNotes, readNotes, type Note } from './notes.ts'
import { Hono, type MiddlewareHandler } from 'hono'
import type { Clock } from '../core/clock.ts'
import { isAmong } from '../core/glob.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { byTrouble, rowOf } from './rows.ts'
import { methodNotAllowed } from '../http/http-errors.ts'

/** Builds every index when its database has changed, and reports the progress of each. */
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

const othersIn = (registry: Registry, self: string) =>
  (registry.members(ROLE)?.members ?? [])
    .filter((member) => member.id !== self && buildsIndexes(member))
    .map(({ id }) => id)

interface IndexesRouteOptions {
  readonly adminOnly: MiddlewareHandler
  readonly indexes: Pick<Indexes, 'counts' | 'entries'>
  /** Id of this worker. */
  readonly worker: string
  /** Reads the notes of the other workers that build indexes. */
  readonly notes: (signal: AbortSignal) => Promise<readonly Note[]>
  readonly clock: Clock
}

/**
 * `GET /_indexes`, for server admins: this worker's indexes and the stale ones of other workers, the worst first.
 * `?database=` takes a name or a glob.
 */
export function indexesRoute({ adminOnly, indexes, worker, notes, clock }: IndexesRouteOptions): Hono {
  const app = new Hono()
  app.get('/_indexes', adminOnly, async (c) => {
    const others = await notes(c.req.raw.signal).catch(ifCouchAnswersNot)
    const wanted = c.req.query('database')
    const now = clock.now()
    const rows = [...indexes.entries()].map((entry) => rowOf(entry, now))
    const own = rows.map((row) => ({ ...row, worker }))
    const theirs = others.flatMap((note) => note.behind.map((row) => ({ ...row, worker: note.worker })))
    const { databases, fresh, behind, failing, building, queued, serversKen, paused } = indexes.counts()
    return c.json({
      ...{ worker, ken: serversKen, paused: paused ?? null, databases, indexes: rows.length },
      ...{ fresh, behind, failing, building, queued },
      others: others.map(({ worker, at, indexes, behind }) => ({ worker, at, indexes, behind: behind.length })),
      rows: [...own, ...theirs]
        .filter(({ db_name }) => wanted === undefined || isAmong(db_name, [wanted]))
        .sort(byTrouble),
    })
  })
  app.all('/_indexes', methodNotAllowed('GET', 'HEAD'))
  return app
}

/** If CouchDB does not answer, the route reports only this worker's indexes. */
function ifCouchAnswersNot(thrown: unknown): readonly Note[] {
  if (thrown instanceof CouchError) return []
  throw thrown
}
