/** What operators do through the pages: orders for documents and handlers, and the canary. */
import { Hono } from 'hono'
import { sendCanary } from '../canary/canary.ts'
import { isAmong } from '../core/glob.ts'
import type { Couch } from '../couch/client.ts'
import { explainDocument } from '../databases/explain-document.ts'
import type { HandlerTables } from '../databases/handler-tables.ts'
import { methodNotAllowed } from '../http/http-errors.ts'
import type { Platform } from '../platform.ts'
import { fieldsOf, type Access } from './access.tsx'
import { Confirm, carryOut, orderFrom } from './actions.tsx'
import type { Batches } from './batches.ts'
import { maxSelected } from './document-filter.ts'
import type { OtherWorkers } from './other-workers.ts'
import { BatchPage, batchPath, Done } from './outcome.tsx'
import { Canary } from './overview.tsx'
import type { Counts } from './per-database.ts'
import { refuseForeign } from './sign-in.tsx'

interface ActionRoutesOptions extends Pick<Platform, 'config' | 'survey' | 'clock' | 'log' | 'signal' | 'adminOnly'> {
  readonly couch: Couch
  readonly patterns: readonly string[]
  readonly tables: HandlerTables
  readonly counts: Counts
  readonly batches: Batches
  readonly others: OtherWorkers
  /** Drops what the pages have read, after a write. */
  readonly expire: () => void
  readonly access: Access
}

/** Timeout of a canary. A document takes some 10 ms; the resync that finds missed changes runs each minute. */
const CANARY_MS = 10_000
/** Maximum wait for the number of documents that an order selects, milliseconds. */
const COUNT_MS = 5000

export function actionRoutes(options: ActionRoutesOptions): Hono {
  const { config, survey, clock, log, signal, couch, patterns, tables, counts, batches, others, expire } = options
  const { shown, acted } = options.access
  const control = couch.db(config.controlDb)
  const app = new Hono()

  /** A fresh count, for a number that a person decides on. */
  const countNow = () => counts.look(0, COUNT_MS)

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
  return app
}
