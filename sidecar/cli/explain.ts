import type { Machines } from '../../ddocs/machine.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { SidecarError } from '../core/errors.ts'
import { isAmong } from '../core/glob.ts'
import { historyLine, readHistory } from '../history/read-history.ts'
import { listMismatches } from '../deploy/list-mismatches.ts'
import { explain } from '../docstate/operator/explain.ts'
import { DDOC_ID } from '../docstate/finding/pages.ts'
import { handlerSettingsIn } from './handler-settings.ts'
import { loadHandlers } from './load-handlers.ts'
import { patternsOf } from '../databases/patterns.ts'
import { withCouch } from './connect.ts'
import { oneLine } from './printable.ts'
import { tablesFor } from './tables-for.ts'
import type { Terminal } from './terminal.ts'

/** What happens to one document, and why. */
export async function explainOne(
  terminal: Terminal,
  config: Config,
  { db, id }: { readonly db: string; readonly id: string },
  { json = false }: { readonly json?: boolean } = {},
): Promise<void> {
  const handlers = await loadHandlers(config.handlers)
  await withCouch(config, async (couch) => {
    const { table } = tablesFor(couch, config, handlers).of(db)
    const database = couch.db(db)
    const { signal } = terminal
    const ddoc = await database.find(DDOC_ID, {}, { signal })
    const { historyDb: name } = config
    const history = name === undefined ? [] : await readHistory(couch, { name, database: db, id }, signal)
    const explained = explain({
      ...{ database, table, id, signal, clock: systemClock, control: couch.db(config.controlDb) },
      settings: await handlerSettingsIn(couch.db(config.controlDb), signal),
      served: isAmong(db, patternsOf(config)),
      guarded: (ddoc?.machines ?? {}) as Machines,
      // Where there is no design document yet, the start brings it, with the machines of these handlers.
      faultsOf: (registration) => (ddoc ? listMismatches(ddoc, [registration], table.machines) : []),
    })
    const lines = await explained.catch((thrown: unknown) => {
      if (thrown instanceof SidecarError && thrown.code === 'not-found' && history.length > 0)
        return [`${thrown.message}.`]
      throw thrown
    })
    lines.push(...(history.length > 0 ? ['What came before:', ...history.map(historyLine)] : []))
    if (json) terminal.print(JSON.stringify({ database: db, id, sentences: lines, history }))
    else for (const line of lines) terminal.print(oneLine(line))
  })
}
