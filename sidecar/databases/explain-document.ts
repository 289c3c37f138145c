import type { Machines } from '../../ddocs/machine.ts'
import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import { SidecarError } from '../core/errors.ts'
import { isAmong } from '../core/glob.ts'
import type { Couch } from '../couch/client.ts'
import { listMismatches } from '../deploy/list-mismatches.ts'
import { DDOC_ID } from '../docstate/finding/pages.ts'
import { explain } from '../docstate/operator/explain.ts'
import type { HistoryDoc } from '../history/history-doc.ts'
import { readHistory } from '../history/read-history.ts'
import type { HandlerTables } from './handler-tables.ts'
import { handlerSettingsIn } from './handler-settings.ts'
import { patternsOf } from './patterns.ts'
import { hasCapability } from './capabilities.ts'
import { listWorkers } from '../workers/list-workers.ts'

export interface ExplainDocumentOptions {
  readonly couch: Couch
  readonly config: Pick<Config, 'controlDb' | 'databases' | 'historyDb'>
  readonly tables: Pick<HandlerTables, 'of'>
  readonly clock: Clock
  readonly signal: AbortSignal
}

export interface Explained {
  /** The explanation. If only the history has the document, it says that the document does not exist. */
  readonly sentences: readonly string[]
  /** Handled entries of the document in the history; empty without a history. */
  readonly history: readonly HistoryDoc[]
}

/** Explains what happens to one document, and why. Throws `SidecarError` (code `not-found`), `CouchError`. */
export async function explainDocument(
  db: string,
  id: string,
  { couch, config, tables, clock, signal }: ExplainDocumentOptions,
): Promise<Explained> {
  const { table } = tables.of(db)
  const database = couch.db(db)
  const control = couch.db(config.controlDb)
  const ddoc = await database.find(DDOC_ID, {}, { signal })
  const { historyDb: name } = config
  const history = name === undefined ? [] : await readHistory(couch, { name, database: db, id }, signal)
  try {
    const sentences = await explain({
      ...{ database, table, id, signal, clock, control },
      settings: await handlerSettingsIn(control, signal),
      hasWorker: async (pair) => (await listWorkers(control, signal)).some((worker) => hasCapability(worker, db, pair)),
      served: isAmong(db, patternsOf(config)),
      guarded: (ddoc?.machines ?? {}) as Machines,
      // A missing design document is no fault: a sidecar deploys it at startup, with the machines of these handlers.
      faultsOf: (registration) => (ddoc ? listMismatches(ddoc, [registration], table.machines) : []),
    })
    return { sentences, history }
  } catch (thrown) {
    if (thrown instanceof SidecarError && thrown.code === 'not-found' && history.length > 0)
      return { sentences: [`${thrown.message}.`], history }
    throw thrown
  }
}
