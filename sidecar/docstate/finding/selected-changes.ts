import type { Database } from '../../couch/database.ts'
import { seqText, type ChangesPage, type Seq, type StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { isStoredDoc } from '../../couch/schemas.ts'
import { VIEW_TIMEOUT_MS } from './pages.ts'

/** Which documents are asked for: as a filter of CouchDB's, and the same of a document. */
export interface Selection {
  readonly selector: object
  readonly matches: (doc: StoredDoc) => boolean
}

export interface SelectedPage {
  readonly ids: readonly string[]
  /** Empty unless they were asked for. */
  readonly docs: readonly StoredDoc[]
  /** After them. */
  readonly seq: Seq
  readonly isLast: boolean
}

/** What has changed after a place, of some documents, a page at a time. Throws `CouchError`. */
export type SelectedChanges = (
  selection: Selection,
  since: Seq,
  options: { readonly withDocs?: boolean; readonly signal: AbortSignal },
) => Promise<SelectedPage>

const PAGE = 500

/** By the server's filter; where it has none, all that has changed is read. */
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
        await database.info({ signal }) // it is there: so it is the filter that is not
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
