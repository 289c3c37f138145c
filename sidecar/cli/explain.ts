import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { explain } from '../docstate/explain.ts'
import { loadHandlers } from '../load-handlers.ts'
import { loadTemplates } from '../mail/templates.ts'
import { createTables } from '../tables.ts'
import { withCouch } from './connect.ts'
import type { Terminal } from './terminal.ts'

/** What happens to one document, and why. */
export async function explainOne(terminal: Terminal, config: Config, db: string, id: string): Promise<void> {
  const handlers = await loadHandlers(config.handlers)
  await withCouch(config, async (couch) => {
    const tables = createTables({
      config,
      handlers,
      couch,
      templates: loadTemplates(),
      clock: systemClock,
      publicUrl: '',
    })
    const table = db === config.controlDb ? tables.control : tables.docstate
    for (const line of await explain(couch.db(db), table, systemClock, id)) terminal.print(line)
  })
}
