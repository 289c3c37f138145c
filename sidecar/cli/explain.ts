import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { oneLine } from '../core/visible.ts'
import { explainDocument } from '../databases/explain-document.ts'
import { historyLine } from '../history/read-history.ts'
import { withCouch } from './connect.ts'
import { loadHandlers } from './load-handlers.ts'
import { tablesFor } from './tables-for.ts'
import type { Terminal } from './terminal.ts'

/** Explains what happens to one document, and why. */
export async function explainOne(
  terminal: Terminal,
  config: Config,
  { db, id }: { readonly db: string; readonly id: string },
  { json = false }: { readonly json?: boolean } = {},
): Promise<void> {
  const handlers = await loadHandlers(config.handlers)
  await withCouch(config, async (couch) => {
    const tables = tablesFor(couch, config, handlers)
    const options = { couch, config, tables, clock: systemClock, signal: terminal.signal }
    const { sentences, history } = await explainDocument(db, id, options)
    const lines = [...sentences, ...(history.length > 0 ? ['History:', ...history.map(historyLine)] : [])]
    if (json) terminal.print(JSON.stringify({ database: db, id, sentences: lines, history }))
    else for (const line of lines) terminal.print(oneLine(line))
  })
}
