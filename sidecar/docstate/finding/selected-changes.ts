import type { Database } from '../../couch/database.ts'
import { seqText, type ChangesPage, type Seq, type StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { isStoredDoc } from '../../couch/schemas.ts'
import { VIEW_TIMEOUT_MS } from './pages.ts'

/** Selects documents: as a filter for CouchDB, and as the same test of one document. */
export interface Selection {
  readonly selector: object
  readonly matches: (doc: StoredDoc) => boolean
}

export interface SelectedPage {
  readonly ids: readonly string[]
  /** Documents, if `withDocs` requests them. */
  readonly docs: readonly StoredDoc[]
  /** Sequence after the page. */
  readonly seq: Seq
  readonly isLast: boolean
}

/** Reads one page of changes of selected documents after `since`. Throws `CouchError`. */
export type SelectedChanges = (
  selection: Selection,
  since: Seq,
  options: { readonly withDocs?: boolean; readonly signal: AbortSignal },
) => Promise<SelectedPage>

const PAGE = 500

/** Uses the server's filter. If the server has none, reads all changes and filters them here. */
export function createSelectedChanges(database: Database): SelectedChanges {
  let hasSelector = true
  return async ({ selector, matches }, since, { withDocs = false, signal }) => {
    const query = { since: seqText(since), limit: PAGE }
    const options = { signal, timeoutMs: VIEW_TIMEOUT_MS }
    if (hasSelector) {
      try {
        return pageFrom(await database.changesPage({ ...query, include_docs: withDocs }, options, selector))
      } catch (thrown) {
        if (!isCouchError(thrown, 'not_found')) throw thrown
        await database.info({ signal }) // the database exists, so the filter is missing
        hasSelector = false
      }
    }
    return pageFrom(await database.changesPage({ ...query, include_docs: true }, options), matches)
  }
}

function pageFrom({ results, last_seq }: ChangesPage, matches?: Selection['matches']): SelectedPage {
  const rows = matches ? results.filter(({ doc }) => isStoredDoc(doc) && matches(doc)) : results
  return {
    ids: rows.map(({ id }) => String(id)),
    docs: rows.flatMap(({ doc }) => (isStoredDoc(doc) ? [doc] : [])),
    seq: last_seq,
    isLast: results.length < PAGE,
  }
}
