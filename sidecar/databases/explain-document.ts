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
  /** For people; none but that it is not there, where only the history knows of it. */
  readonly sentences: readonly string[]
  /** Its entries that have ended, as far as they are kept. */
  readonly history: readonly HistoryDoc[]
}

/** What happens to one document, and why. Throws `SidecarError` (code `not-found`), `CouchError`. */
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
      // Where there is no design document yet, the start brings it, with the machines of these handlers.
      faultsOf: (registration) => (ddoc ? listMismatches(ddoc, [registration], table.machines) : []),
    })
    return { sentences, history }
  } catch (thrown) {
    if (thrown instanceof SidecarError && thrown.code === 'not-found' && history.length > 0)
      return { sentences: [`${thrown.message}.`], history }
    throw thrown
  }
}
