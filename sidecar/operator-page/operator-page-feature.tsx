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
import { handlersOf } from '../databases/capabilities.ts'
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
import { metricsOf, type Metrics } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { listWorkers } from '../workers/list-workers.ts'
import { Ask, carryOut, filterOf, meantBy, mostMeant, orderFrom } from './actions.tsx'
import { Batches } from './batches.ts'
import { Deploys } from './deploys.tsx'
import { documentMetrics } from './document-metrics.ts'
import { DocumentPage, Documents, isStatus, type Asked } from './documents.tsx'
import { Handlers } from './handlers.tsx'
import { Indexes } from './indexes.tsx'
import { graphsOf } from './lately.tsx'
import { viewerOf, type Viewer } from './layout.tsx'
import { listById, listStanding } from './list-documents.ts'
import { Machines } from './machines.tsx'
import { Away, Canary, Overview } from './overview.tsx'
import { BatchPage, batchPath, Done } from './outcome.tsx'
import { createCounts, PerDatabase } from './per-database.ts'
import { PersonPage } from './person-page.tsx'
import { RecentEvents } from './recent-events.ts'
import { Series } from './series.ts'
import { COOKIE, pathFrom, refuseForeign, SignIn, viewing, wantsPage } from './sign-in.tsx'

export interface OperatorPageOptions extends Platform {
  /** What keeps this worker from its work. */
  readonly problems: () => readonly string[]
  /** Of all features. */
  readonly metrics: () => readonly Metrics[]
}

/** Nothing from elsewhere, and no script but those that are served here. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** A page that is open asks each five seconds. */
const FRESH_MS = 4000
/** A document takes some ten milliseconds; the list of those that no feed has told is read each minute. */
const CANARY_MS = 10_000
/** So long is waited for the number of documents that an order means. */
const COUNT_MS = 5000
/** Metrics are read each ten seconds or more. */
const SCRAPE_MS = 9000
/** Side by side. */
const MOST_CONFLICTS = 4
const own = createRequire(import.meta.url)
const folder = join(dirname(own.resolve('couchdb-sidecar/package.json')), 'pages')
/** What pages load, by the names under which they ask for it. */
const FILES = [
  ['page.css', 'text/css', join(folder, 'page.css')],
  ['live.js', 'text/javascript', join(folder, 'live.js')],
  ['graphs.js', 'text/javascript', join(folder, 'graphs.js')],
  ['uplot.js', 'text/javascript', own.resolve('uplot/dist/uPlot.iife.min.js')],
  ['uplot.css', 'text/css', own.resolve('uplot/dist/uPlot.min.css')],
] as const

/** `GET /` and the pages below it, for people: server admins, and users with the role `sidecar-viewer`. */
export function operatorPageFeature(options: OperatorPageOptions): Feature {
  const { config, couch: connections, authenticate, survey, clock, log, publicUrl, signal, problems } = options
  const couch = connections.answers
  const control = couch.db(config.controlDb)
  const patterns = patternsOf(config)
  const recentEvents = new RecentEvents(options)
  const series = new Series({ metrics: options.metrics, ...options.worker, clock })
  const mailbox = mailboxUrl(options, '')
  const counts = createCounts({ couch, survey, patterns, clock, signal })
  const deploys = new PerDatabase({
    ...{ survey, patterns, clock, signal },
    read: async (name) => ({ name, deploy: await readDeploy(couch.db(name), { signal }) }),
  })
  const tables = createHandlerTables({ ...options, couch, compiler: createCompiler() })
  const app = new Hono()

  /** For those who are signed in; others are asked to. What is made is a page's content, or another answer. */
  const shown = (make: (c: Context, viewer: Viewer) => Promise<Child | Response>) => async (c: Context) => {
    const user = await viewing(c, authenticate).catch(awayIf503)
    if (user === 'away') {
      c.status(503)
      return page(c, <Away problems={problems()} />)
    }
    if (!user) return c.redirect(`/sign-in?to=${encodeURIComponent(pathOf(c))}`, 303)
    const isByItself = c.req.header('sidecar-refresh') !== undefined
    const renewed = isByItself ? undefined : await options.renewSession(c)
    if (renewed !== undefined) c.header('Set-Cookie', cookieOf(renewed, publicUrl))
    const made = await make(c, viewerOf(user))
    return made instanceof Response ? made : page(c, made)
  }

  /** For those who may act, by a form of these pages. */
  const acted = (make: (c: Context, viewer: Viewer) => Promise<Child | Response>) => {
    const asked = shown((c, viewer) => {
      if (!viewer.mayAct) throw new HttpError(403, 'forbidden', 'You may look, and not act: that is for server admins.')
      return make(c, viewer)
    })
    return (c: Context) => {
      refuseForeign(c)
      return asked(c)
    }
  }

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
    const handlers = new Set(workers.flatMap((worker) => handlersOf(worker)))
    return { counted, groups, unread, workers: workers.length, handlers }
  })

  const expire = () => {
    counts.expire()
    stuck.expire()
  }
  /** For a number on which a person decides. */
  const countNow = () => counts.look(0, COUNT_MS)
  const batches = new Batches({ couch, controlDb: config.controlDb, clock, log, signal, onOver: expire })

  app.get('/_page/series', async (c) => {
    if (!(await viewing(c, authenticate))) throw new HttpError(401, 'unauthorized', 'Sign in first.')
    return c.json(graphsOf(series.look().lines))
  })

  for (const [name, type, file] of FILES) {
    const text = readFileSync(file, 'utf8')
    app.get(`/_page/${name}`, (c) => c.body(text, 200, { 'Content-Type': type, 'Cache-Control': 'max-age=300' }))
  }

  app.get('/', async (c, next) => {
    if (!wantsPage(c)) return next()
    return shown(async (_, viewer) => (
      <Overview
        {...await stuck.look()}
        {...{ viewer, mailbox, lately: series.look(), recentEvents: recentEvents.look(), batches: batches.running }}
        problems={problems()}
      />
    ))(c)
  })

  app.get(
    '/documents',
    shown(async (c, viewer) => {
      const asked = askedOf(c)
      const { databases } = await counts.look()
      const meant = { couch, databases: meantBy(asked, databases), signal: c.req.raw.signal } // who has left is not read for
      const { id, after } = asked
      const listing = id
        ? await listById(meant, id)
        : await listStanding(meant, { filter: filterOf(asked), now: clock.now(), after })
      return <Documents {...{ viewer, asked, listing, total: mostMeant(asked, databases) }} />
    }),
  )

  /** Those of the user's own databases first. */
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
    const others = await Promise.all(revisions.map((rev) => couch.db(db).find(id, { rev }, { signal: until })))
    const conflicts = others.flatMap((other) => other ?? []) // one may be deleted meanwhile
    return <DocumentPage {...{ viewer, database: db, doc, conflicts, explained, isShown }} />
  }
  app.get('/document', shown(documentPage(false)))
  app.post('/document', acted(documentPage(true)))

  app.get(
    '/handlers',
    shown(async (c, viewer) => {
      const until = c.req.raw.signal
      const [workers, settings] = await Promise.all([listWorkers(control, until), handlerSettingsIn(control, until)])
      return <Handlers {...{ viewer, workers, settings }} />
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
      const keepers = workers.filter(buildsIndexes).map(({ id }) => id)
      return <Indexes {...{ viewer, tasks, notes: await readNotes(control, keepers, until) }} />
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
      return <PersonPage {...{ viewer, address, person, controlDb: config.controlDb }} />
    }),
  )

  app.get(
    '/act',
    shown(async (c, viewer) => {
      const fields = c.req.query()
      const order = orderFrom(fields)
      if (!('asked' in order)) return <Ask {...{ viewer, order, fields, most: undefined, isWhole: true }} />
      const { databases, isWhole } = await countNow()
      return <Ask {...{ viewer, order, fields, most: mostMeant(order.asked, databases), isWhole }} />
    }),
  )
  app.post(
    '/act',
    acted(async (c, viewer) => {
      const order = orderFrom(await fieldsOf(c))
      const by = viewer.name
      if ('asked' in order) {
        const names = await survey.list((name) => isAmong(name, patterns), c.req.raw.signal)
        const most = mostMeant(order.asked, (await countNow()).databases)
        const { id } = await batches.begin(order, { names: names.sort(), by, most })
        return c.redirect(batchPath(id), 303)
      }
      const deed = { couch, controlDb: config.controlDb, names: [], by, clock, signal: c.req.raw.signal }
      const sums = await carryOut(order, deed)
      expire()
      log.info({ ...order, address: undefined, by, ...sums, undo: undefined }, 'an operator has acted')
      return <Done {...{ viewer, order, sums }} />
    }),
  )
  app.get(
    '/batch',
    shown((c, viewer) => Promise.resolve(<BatchPage {...{ viewer, batch: batches.get(c.req.query('id') ?? '') }} />)),
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

/** While CouchDB cannot be asked who it is. */
function awayIf503(thrown: unknown): 'away' {
  if (isCouchError(thrown) && isServerAway(thrown.code)) return 'away'
  throw thrown
}

/** Asked for by many at once, it is worked out once; and not again as long as it is fresh. */
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
    /** After a write of ours. */
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

function askedOf(c: Context): Asked {
  const { db, type, state, status, code, id, after } = c.req.query()
  if (status && !isStatus(status)) throw new HttpError(400, 'bad_request', `There is no status ${status}.`)
  return {
    ...{ db: db || undefined, type: type || undefined, state: state || undefined, status: status || undefined },
    ...{ code: code || undefined, id: id || undefined, after: after || undefined },
  }
}

async function fieldsOf(c: Context): Promise<Record<string, string | undefined>> {
  const fields = await c.req.parseBody()
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
  )
}

/** A document, or its database, that is not there is no failure of the page. */
function missing(thrown: unknown) {
  const { code, message } = thrown as { code?: unknown; message?: unknown }
  if (code !== 'not-found' && code !== 'not_found') throw thrown
  return { sentences: [oneLine(`${String(message)}.`)], history: [] }
}
