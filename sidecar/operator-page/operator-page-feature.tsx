import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Hono, type Context } from 'hono'
import { html } from 'hono/html'
import type { Child } from 'hono/jsx'
import { ownerHashOf } from '../accounts/owner.ts'
import { sendCanary } from '../canary/canary.ts'
import { findPerson } from '../channels/person.ts'
import type { Clock } from '../core/clock.ts'
import { isAmong } from '../core/glob.ts'
import { oneLine } from '../core/visible.ts'
import { isCouchError, isServerAway, unreadInWords, type CouchError } from '../couch/couch-errors.ts'
import { explainDocument } from '../databases/explain-document.ts'
import { handlerSettingsIn } from '../databases/handler-settings.ts'
import { createHandlerTables } from '../databases/handler-tables.ts'
import { patternsOf } from '../databases/patterns.ts'
import { findStuck } from '../databases/stuck.ts'
import { createCompiler } from '../deploy/compiler.ts'
import { readDeploy } from '../deploy/staging/record.ts'
import { typesAndStatesOf } from '../docstate/classify.ts'
import { mailboxUrl } from '../embedded/mailbox-feature.ts'
import type { Feature } from '../feature.ts'
import { HttpError, methodNotAllowed } from '../http/http-errors.ts'
import { readIndexerTasks } from '../indexes/indexer-tasks.ts'
import { buildsIndexes, readNotes } from '../indexes/notes.ts'
import { recentFailuresFrom } from '../docstate/recent-failures.ts'
import { recentMailsFrom } from '../mail/recent-mails.ts'
import { metricsOf, type Metrics } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { listWorkers, type Listed } from '../workers/list-workers.ts'
import { Confirm, carryOut, selectDatabases, maxSelected, orderFrom } from './actions.tsx'
import { graphsOf } from './activity.tsx'
import { documentFilterFrom, filterOf } from './document-filter.ts'
import { Batches } from './batches.ts'
import { feedsOf } from './databases.tsx'
import { Deploys } from './deploys.tsx'
import { documentMetrics } from './document-metrics.ts'
import { DocumentPage, Documents, type FailureShown } from './documents.tsx'
import { Handlers } from './handlers.tsx'
import { Indexes } from './indexes.tsx'
import { viewerOf, type Viewer } from './layout.tsx'
import { listById, listStanding } from './list-documents.ts'
import { Machines } from './machines.tsx'
import { Mails, type MailAttempt } from './mails.tsx'
import { Away, Canary, Overview } from './overview.tsx'
import { OtherWorkers } from './other-workers.ts'
import { BatchPage, batchPath, Done } from './outcome.tsx'
import { createCounts, PerDatabase } from './per-database.ts'
import { PersonPage } from './person-page.tsx'
import { RecentEvents } from './recent-events.ts'
import { Series } from './series.ts'
import { COOKIE, pathFrom, refuseForeign, SignIn, viewing, wantsPage } from './sign-in.tsx'

export interface OperatorPageOptions extends Platform {
  /** Current problems of this worker. */
  readonly problems: () => readonly string[]
  /** Metrics of all features. */
  readonly metrics: () => readonly Metrics[]
}

/** Allows nothing from other sites, and only scripts that the sidecar serves. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** Shorter than the five seconds after which an open page loads again. */
const FRESH_MS = 4000
/** Timeout of a canary. A document takes some 10 ms; the resync that finds missed changes runs each minute. */
const CANARY_MS = 10_000
/** Maximum wait for the number of documents that an order selects, milliseconds. */
const COUNT_MS = 5000
/** Shorter than the ten seconds or more between two scrapes. */
const SCRAPE_MS = 9000
/** Maximum revisions shown side by side. */
const MOST_CONFLICTS = 4
const own = createRequire(import.meta.url)
const folder = join(dirname(own.resolve('couchdb-sidecar/package.json')), 'pages')
/** Files that pages load, by the names in their addresses. */
const FILES = [
  ['page.css', 'text/css', join(folder, 'page.css')],
  ['live.js', 'text/javascript', join(folder, 'live.js')],
  ['graphs.js', 'text/javascript', join(folder, 'graphs.js')],
  ['uplot.js', 'text/javascript', own.resolve('uplot/dist/uPlot.iife.min.js')],
  ['uplot.css', 'text/css', own.resolve('uplot/dist/uPlot.min.css')],
] as const

/** Serves `GET /` and the pages below it to server admins and users with the role `sidecar-viewer`. */
export function operatorPageFeature(options: OperatorPageOptions): Feature {
  const { config, couch: connections, authenticate, survey, clock, log, mailer, publicUrl, signal, problems } = options
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
  const app = new Hono()

  /** Answers signed-in users; redirects others to the sign-in. `make` returns a page's content, or another answer. */
  const shown = (make: (c: Context, viewer: Viewer) => Promise<Child | Response>) => async (c: Context) => {
    const away = () => {
      c.status(503)
      return page(c, <Away problems={problems()} />)
    }
    const user = await viewing(c, authenticate).catch(awayIf503)
    if (user === 'away') return away()
    if (!user) return c.redirect(`/sign-in?to=${encodeURIComponent(pathOf(c))}`, 303)
    const isByItself = c.req.header('sidecar-refresh') !== undefined
    const renewed = isByItself ? undefined : await options.renewSession(c)
    if (renewed !== undefined) c.header('Set-Cookie', cookieOf(renewed, publicUrl))
    const made = await make(c, viewerOf(user)).catch(c.req.method === 'GET' ? awayIf503 : undefined)
    if (made === 'away') return away()
    return made instanceof Response ? made : page(c, made)
  }

  /** Answers users who may act, through a form of these pages. */
  const acted = (make: (c: Context, viewer: Viewer) => Promise<Child | Response>) => {
    const handle = shown((c, viewer) => {
      if (!viewer.mayAct)
        throw new HttpError(403, 'forbidden', 'You have read access only: actions need a server admin.')
      return make(c, viewer)
    })
    return (c: Context) => {
      refuseForeign(c)
      return handle(c)
    }
  }

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
  /** A fresh count, for a number that a person decides on. */
  const countNow = () => counts.look(0, COUNT_MS)
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

  for (const [name, type, file] of FILES) {
    const text = readFileSync(file, 'utf8')
    app.get(`/_page/${name}`, (c) => c.body(text, 200, { 'Content-Type': type, 'Cache-Control': 'max-age=300' }))
  }

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

  app.get(
    '/documents',
    shown(async (c, viewer) => {
      const filter = documentFilterFrom(c.req.query())
      const { databases } = await counts.look()
      // The read ends when the client leaves.
      const selected = { couch, databases: selectDatabases(filter, databases), signal: c.req.raw.signal }
      const { id, after } = filter
      const listing = id
        ? await listById(selected, id)
        : await listStanding(selected, { filter: filterOf(filter), now: clock.now(), after })
      return <Documents {...{ viewer, filter, listing, total: maxSelected(filter, databases) }} />
    }),
  )

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

  const documentPage = (isShown: boolean) => async (c: Context, viewer: Viewer) => {
    const { db, id } = c.req.query()
    if (!db || !id) throw new HttpError(400, 'bad_request', 'Expected a database and an id.')
    const until = c.req.raw.signal
    const explained = await explainDocument(db, id, { couch, config, tables, clock, signal: until }).catch(missing)
    const doc = await couch.db(db).find(id, { conflicts: true }, { signal: until })
    if (isShown) log.info({ db, doc: id, by: viewer.name }, 'the fields of a document were shown')
    const revisions = (doc?._conflicts ?? []).slice(0, MOST_CONFLICTS)
    const revised = await Promise.all(revisions.map((rev) => couch.db(db).find(id, { rev }, { signal: until })))
    const conflicts = revised.flatMap((revision) => revision ?? []) // a revision may be deleted in the meantime
    const failures: readonly FailureShown[] = [
      ...options.recentFailures.all,
      ...others
        .look()
        .flatMap(({ worker, data }) => recentFailuresFrom(data.failures).map((failure) => ({ ...failure, worker }))),
    ]
    return <DocumentPage {...{ viewer, database: db, doc, conflicts, explained, failures, isShown }} />
  }
  app.get('/document', shown(documentPage(false)))
  app.post('/document', acted(documentPage(true)))

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

  app.get(
    '/act',
    shown(async (c, viewer) => {
      const fields = c.req.query()
      const order = orderFrom(fields)
      if (!('filter' in order)) return <Confirm {...{ viewer, order, fields, most: undefined, isWhole: true }} />
      const { databases, isWhole } = await countNow()
      return <Confirm {...{ viewer, order, fields, most: maxSelected(order.filter, databases), isWhole }} />
    }),
  )
  app.post(
    '/act',
    acted(async (c, viewer) => {
      const order = orderFrom(await fieldsOf(c))
      const by = viewer.name
      if ('filter' in order) {
        const names = await survey.list((name) => isAmong(name, patterns), c.req.raw.signal)
        const most = maxSelected(order.filter, (await countNow()).databases)
        const batch = await batches.begin(order, { names: names.sort(), by, most })
        // At another address, another worker might answer, which does not know the batch yet.
        if (batch.status !== 'running') return <BatchPage {...{ viewer, batch }} />
        return c.redirect(batchPath(batch.id), 303)
      }
      const context = { couch, controlDb: config.controlDb, names: [], by, clock, signal: c.req.raw.signal }
      const sums = await carryOut(order, context)
      expire()
      log.info({ ...order, address: undefined, by, ...sums, undo: undefined }, 'an operator has acted')
      return <Done {...{ viewer, order, sums }} />
    }),
  )
  app.get(
    '/batch',
    shown((c, viewer) => {
      const batch = batches.get(c.req.query('id') ?? '', others.look())
      return Promise.resolve(<BatchPage {...{ viewer, batch }} />)
    }),
  )
  app.post(
    '/batch/stop',
    acted(async (c) => {
      const { id = '' } = await fieldsOf(c)
      batches.stop(id)
      return c.redirect(batchPath(id), 303)
    }),
  )

  const explain = async (id: string) =>
    (await explainDocument(config.controlDb, id, { couch, config, tables, clock, signal })).sentences
  const canary = (signal: AbortSignal) => sendCanary({ control, withinMs: CANARY_MS, explain, clock, signal })
  app.post('/_canary', options.adminOnly, async (c) => {
    refuseForeign(c)
    const result = await canary(c.req.raw.signal)
    if (result.kind === 'arrived') return c.json({ ok: true, ms: Math.round(result.ms), worker: result.worker })
    return c.json({ error: 'canary_lost', reason: result.reasons.join(' ') }, 503)
  })
  app.all('/_canary', methodNotAllowed('POST'))
  app.post(
    '/canary',
    acted(async (c, viewer) => <Canary viewer={viewer} result={await canary(c.req.raw.signal)} />),
  )

  app.get('/sign-in', (c) => page(c, <SignIn to={pathFrom(c.req.query('to'))} />))
  app.post('/sign-in', async (c) => {
    refuseForeign(c)
    const { name = '', password = '', to } = await fieldsOf(c)
    const cookie = await options.signIn(c, { name, password })
    if (cookie === undefined) {
      c.status(401)
      return page(c, <SignIn to={pathFrom(to)} refusal="Name or password is incorrect." />)
    }
    c.header('Set-Cookie', cookieOf(cookie, publicUrl))
    return c.redirect(pathFrom(to), 303)
  })
  app.post('/sign-out', (c) => {
    refuseForeign(c)
    c.header('Set-Cookie', `${cookieOf('', publicUrl)}; Max-Age=0`)
    return c.redirect('/sign-in', 303)
  })
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

/** Returns `away` while CouchDB cannot be reached; rethrows other errors. */
function awayIf503(thrown: unknown): 'away' {
  if (isCouchError(thrown) && isServerAway(thrown.code)) return 'away'
  throw thrown
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

const pathOf = (c: Context): string => {
  const { pathname, search } = new URL(c.req.url)
  return pathname + search
}

function page(c: Context, content: Child): Response | Promise<Response> {
  c.header('Content-Security-Policy', POLICY)
  return c.html(html`<!doctype html>${content}`)
}

const cookieOf = (value: string, publicUrl: string): string =>
  `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict${publicUrl.startsWith('https:') ? '; Secure' : ''}`

async function fieldsOf(c: Context): Promise<Record<string, string | undefined>> {
  const fields = await c.req.parseBody()
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
  )
}

/** A missing document or database is no failure of the page. */
function missing(thrown: unknown) {
  const { code, message } = thrown as { code?: unknown; message?: unknown }
  if (code !== 'not-found' && code !== 'not_found') throw thrown
  return { sentences: [oneLine(`${String(message)}.`)], history: [] }
}
