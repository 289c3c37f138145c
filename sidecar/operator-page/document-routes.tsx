/** The list of documents, and the page of one. */
import { Hono, type Context } from 'hono'
import { oneLine } from '../core/visible.ts'
import type { Couch } from '../couch/client.ts'
import { explainDocument } from '../databases/explain-document.ts'
import type { HandlerTables } from '../databases/handler-tables.ts'
import { recentFailuresFrom } from '../docstate/recent-failures.ts'
import { HttpError } from '../http/http-errors.ts'
import type { Platform } from '../platform.ts'
import type { Access } from './access.tsx'
import { documentFilterFrom, filterOf, maxSelected, selectDatabases } from './document-filter.ts'
import { DocumentPage, type FailureShown } from './document-page.tsx'
import { Documents } from './documents.tsx'
import type { Viewer } from './layout.tsx'
import { listById, listStanding } from './list-documents.ts'
import type { OtherWorkers } from './other-workers.ts'
import type { Counts } from './per-database.ts'

interface DocumentRoutesOptions extends Pick<Platform, 'config' | 'clock' | 'log' | 'recentFailures'> {
  readonly couch: Couch
  readonly tables: HandlerTables
  readonly counts: Counts
  readonly others: OtherWorkers
  readonly access: Access
}

/** Maximum revisions shown side by side. */
const MOST_CONFLICTS = 4

export function documentRoutes(options: DocumentRoutesOptions): Hono {
  const { config, clock, log, couch, tables, counts, others } = options
  const { shown, acted } = options.access
  const app = new Hono()

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
  return app
}

/** A missing document or database is no failure of the page. */
function missing(thrown: unknown) {
  const { code, message } = thrown as { code?: unknown; message?: unknown }
  if (code !== 'not-found' && code !== 'not_found') throw thrown
  return { sentences: [oneLine(`${String(message)}.`)], history: [] }
}
