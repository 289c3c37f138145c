import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { historyPrefix, type HistoryDoc } from './history-doc.ts'
import { historyDatabases } from './history-databases.ts'

/** Reads the stored entries of a document, oldest first. Throws `CouchError`. */
export async function readHistory(
  couch: Couch,
  { name, database, id }: { readonly name: string; readonly database: string; readonly id: string },
  signal: AbortSignal,
): Promise<HistoryDoc[]> {
  const found: HistoryDoc[] = []
  for (const kept of await historyDatabases(couch, name, signal)) {
    try {
      const docs = await couch.db(kept).withPrefix(historyPrefix(database, id), { signal })
      found.unshift(...(docs as unknown as HistoryDoc[]))
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown // the database was deleted in the meantime
    }
  }
  return found
}

/** One entry as a sentence. */
export function historyLine({
  at,
  from,
  to,
  by,
  worker,
  ms,
  failed_tries: tries,
  failure,
  version,
}: HistoryDoc): string {
  const what = from === to ? `stayed in state ${from}` : `went from ${from} to ${to}`
  const how = by === 'time' ? 'by timeout' : `handled by the worker ${worker} in ${ms} ms`
  const before = tries === 0 ? '' : `, after ${tries} failed ${tries === 1 ? 'attempt' : 'attempts'}`
  const code = version === undefined ? '' : ` (version ${version})`
  return `At ${at} the document ${what}, ${how}${code}${before}${failure ? `: ${failure.code}: ${failure.reason}` : ''}.`
}
