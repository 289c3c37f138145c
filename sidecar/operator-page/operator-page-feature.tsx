import { Hono } from 'hono'
import { ownerHashOf } from '../accounts/owner.ts'
import { findPerson } from '../channels/person.ts'
import type { Clock } from '../core/clock.ts'
import { unreadInWords, type CouchError } from '../couch/couch-errors.ts'
import { handlerSettingsIn } from '../databases/handler-settings.ts'
import { createHandlerTables } from '../databases/handler-tables.ts'
import { patternsOf } from '../databases/patterns.ts'
import { findStuck } from '../databases/stuck.ts'
import { createCompiler } from '../deploy/compiler.ts'
import { readDeploy } from '../deploy/staging/record.ts'
import { typesAndStatesOf } from '../docstate/classify.ts'
import { mailboxUrl } from '../embedded/mailbox-feature.ts'
import type { Feature } from '../feature.ts'
import { HttpError } from '../http/http-errors.ts'
import { readIndexerTasks } from '../indexes/indexer-tasks.ts'
import { buildsIndexes, readNotes } from '../indexes/notes.ts'
import { recentMailsFrom } from '../mail/recent-mails.ts'
import { metricsOf, type Metrics } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { listWorkers, type Listed } from '../workers/list-workers.ts'
import { createAccess } from './access.tsx'
import { actionRoutes } from './action-routes.tsx'
import { graphsOf } from './activity.tsx'
import { Batches } from './batches.ts'
import { feedsOf } from './databases.tsx'
import { Deploys } from './deploys.tsx'
import { documentMetrics } from './document-metrics.ts'
import { documentRoutes } from './document-routes.tsx'
import { Handlers } from './handlers.tsx'
import { Indexes } from './indexes.tsx'
import { Machines } from './machines.tsx'
import { Mails, type MailAttempt } from './mails.tsx'
import { OtherWorkers } from './other-workers.ts'
import { Overview } from './overview.tsx'
import { pageFiles } from './page-files.ts'
import { createCounts, PerDatabase } from './per-database.ts'
import { PersonPage } from './person-page.tsx'
import { RecentEvents } from './recent-events.ts'
import { Series } from './series.ts'
import { viewing, wantsPage } from './sign-in.tsx'

export interface OperatorPageOptions extends Platform {
  /** Current problems of this worker. */
  readonly problems: () => readonly string[]
  /** Metrics of all features. */
  readonly metrics: () => readonly Metrics[]
}

/** Shorter than the five seconds after which an open page loads again. */
const FRESH_MS = 4000
/** Shorter than the ten seconds or more between two scrapes. */
const SCRAPE_MS = 9000

/** Serves `GET /` and the pages below it to server admins and users with the role `sidecar-viewer`. */
export function operatorPageFeature(options: OperatorPageOptions): Feature {
  const { config, couch: connections, authenticate, survey, clock, log, mailer, signal, problems } = options
  const couch = connections.answers
  const control = couch.db(config.controlDb)
  const patterns = patternsOf(config)
  const recentEvents = new RecentEvents(options)
  const { self } = options.worker
  const series = new Series({ metrics: options.metrics, self, clock })
  const mailbox = mailboxUrl(options, '')
  const counts = createCounts({ couch, survey, patterns, clock, signal })
  const deploys = new PerDatabase({
    ...{ survey, patterns, clock, signal },
    read: async (name) => ({ name, deploy: await readDeploy(couch.db(name), { signal }) }),
  })
  const tables = createHandlerTables({ ...options, couch, compiler: createCompiler() })
  const access = createAccess(options)
  const { shown } = access
  const app = new Hono()

  const notesOf = (workers: readonly Listed[], until: AbortSignal) =>
    readNotes(
      control,
      workers.filter(buildsIndexes).map(({ id }) => id),
      until,
    )

  const stuck = createShared(clock, async () => {
    const [counted, workers, settings] = await Promise.all([
      counts.look(),
      listWorkers(control, signal),
      handlerSettingsIn(control, signal),
    ])
    const paused = new Set(Object.keys(settings).filter((name) => settings[name]?.paused))
    const unread: string[] = []
    const onUnread = (name: string, error: CouchError) => void unread.push(unreadInWords(name, error))
    const { databases } = counted
    const groups = await findStuck({ couch, databases, patterns, workers, paused, signal, onUnread })
    const indexNotes = await notesOf(workers, signal)
    return { counted, groups, unread, workers, indexNotes }
  })

  const expire = () => {
    counts.expire()
    stuck.expire()
  }
  const batches = new Batches({ couch, controlDb: config.controlDb, clock, log, signal, onOver: expire })
  const others = new OtherWorkers({
    ...{ payload: options.worker.payload, self, clock },
    dataToSend: () => ({
      series: series.lines,
      events: recentEvents.toSend(),
      batches: batches.toSend,
      mails: mailer.recent.all,
      failures: options.recentFailures.all,
    }),
    requestsToSend: () => (batches.stopping.length > 0 ? { stop: batches.stopping } : {}),
    onRequest: ({ stop }) => Array.isArray(stop) && batches.stopOwn(stop),
  })

  app.get('/_page/series', async (c) => {
    if (!(await viewing(c, authenticate))) throw new HttpError(401, 'unauthorized', 'Sign in first.')
    return c.json(graphsOf((await series.with(others.look())).lines))
  })

  app.get('/', async (c, next) => {
    if (!wantsPage(c)) return next()
    return shown(async (_, viewer) => {
      const received = others.look()
      const activity = await series.with(received)
      const feeds = await feedsOf(options.metrics())
      const [events, running] = [recentEvents.with(received), batches.running(received)]
      return (
        <Overview
          {...await stuck.look()}
          {...{ viewer, activity, feeds, patterns, recentEvents: events, batches: running, problems: problems() }}
        />
      )
    })(c)
  })

  /** Sorts the user's own databases first. */
  const isOwn = (pattern: string) => Number(config.databases.includes(pattern))
  const machines = patterns
    .toSorted((one, other) => isOwn(other) - isOwn(one))
    .flatMap((pattern) =>
      Object.entries(tables.of(pattern).table.machines).map(([type, machine]) => ({ pattern, type, machine })),
    )
  app.get(
    '/machines',
    shown(async (_, viewer) => <Machines {...{ viewer, machines, patterns, counted: await counts.look() }} />),
  )

  app.get(
    '/handlers',
    shown(async (c, viewer) => {
      const until = c.req.raw.signal
      const [workers, settings] = await Promise.all([listWorkers(control, until), handlerSettingsIn(control, until)])
      const lines = (await series.with(others.look())).workers
      return <Handlers {...{ viewer, workers, settings, lines }} />
    }),
  )

  app.get(
    '/indexes',
    shown(async (c, viewer) => {
      const until = c.req.raw.signal
      const [workers, tasks] = await Promise.all([
        listWorkers(control, until),
        readIndexerTasks(couch, { signal: until }),
      ])
      return <Indexes {...{ viewer, tasks, notes: await notesOf(workers, until) }} />
    }),
  )

  app.get(
    '/mails',
    shown(async (_, viewer) => {
      const received = others.look()
      const attempts: readonly MailAttempt[] = [
        ...mailer.recent.all,
        ...received.flatMap(({ worker, data }) => recentMailsFrom(data.mails).map((mail) => ({ ...mail, worker }))),
      ]
      const newestFirst = attempts.toSorted((one, other) => other.at.localeCompare(one.at))
      const { groups } = await stuck.look()
      const { lines } = await series.with(received)
      const sender = { server: mailer.server, from: config.mailFrom, mailbox, isCaught: options.catcher !== undefined }
      return <Mails {...{ viewer, ...sender, lines, attempts: newestFirst, groups }} />
    }),
  )

  app.get(
    '/deploys',
    shown(async (c, viewer) => {
      const tasks = await readIndexerTasks(couch, { signal: c.req.raw.signal })
      return <Deploys {...{ viewer, tasks, looked: await deploys.look() }} />
    }),
  )

  app.get(
    '/person',
    shown(async (c, viewer) => {
      const address = c.req.query('address')?.trim() || undefined
      const person = address === undefined ? undefined : await findPerson(control, address, c.req.raw.signal)
      if (person) log.info({ owner: ownerHashOf(person.address), by: viewer.name }, 'a user was looked at')
      const { databases } = person ? { databases: [] } : await counts.look()
      const counted = databases.find(({ name }) => name === config.controlDb)?.counted?.counts
      return <PersonPage {...{ viewer, address, person, controlDb: config.controlDb, counts: counted }} />
    }),
  )

  const parts = { ...options, couch, patterns, tables, counts, batches, others, expire, access }
  for (const routes of [documentRoutes(parts), actionRoutes(parts), access.routes, pageFiles()]) app.route('/', routes)

  const handledIn = (pattern: string) => {
    const { registrations, machines } = tables.of(pattern).table
    return typesAndStatesOf({ registrations, machines })
  }
  const look = () => counts.look(SCRAPE_MS)
  return {
    run: (until) => series.run(until),
    routes: [app],
    metrics: [metricsOf(documentMetrics, { look, patterns, handledIn, now: () => clock.now() })],
  }
}

/** Shares one result among concurrent callers, and with later callers while the result is fresh. */
function createShared<T>(clock: Pick<Clock, 'ticks'>, work: () => Promise<T>) {
  let known: { readonly result: Promise<T>; readonly at: number } | undefined
  return {
    look(): Promise<T> {
      if (known && clock.ticks() - known.at < FRESH_MS) return known.result
      const result = work()
      known = { result, at: clock.ticks() }
      result.catch(() => (known = undefined))
      return result
    },
    /** Drops the result, after a write of this worker. */
    expire: () => void (known = undefined),
  }
}
