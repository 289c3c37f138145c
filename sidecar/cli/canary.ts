import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { parseDuration } from '../core/duration.ts'
import { ConfigError, SidecarError } from '../core/errors.ts'
import { oneLine } from '../core/visible.ts'
import { sendCanary } from '../canary/canary.ts'
import { explainDocument } from '../databases/explain-document.ts'
import { loadHandlers } from './load-handlers.ts'
import { withCouch } from './connect.ts'
import { tablesFor } from './tables-for.ts'
import type { Terminal } from './terminal.ts'

export interface CanaryFlags {
  readonly within: string
  readonly json?: boolean
}

/** Tests the whole path with a document. Prints how long it took, or what the document waits for. */
export async function canary(terminal: Terminal, config: Config, { within, json }: CanaryFlags): Promise<void> {
  const withinMs = parseDuration(within)
  if (!withinMs) throw new ConfigError([`canary: --within: expected a time such as 10s, got ${within}`])
  const handlers = await loadHandlers(config.handlers)
  const { signal, print } = terminal
  const clock = systemClock
  await withCouch(config, async (couch) => {
    const tables = tablesFor(couch, config, handlers)
    const explain = async (id: string) =>
      (await explainDocument(config.controlDb, id, { couch, config, tables, clock, signal })).sentences
    const result = await sendCanary({ control: couch.db(config.controlDb), withinMs, explain, clock, signal })
    if (json) print(JSON.stringify(result))
    if (result.kind === 'lost') {
      if (!json) result.reasons.forEach((reason) => terminal.note(oneLine(reason)))
      throw new SidecarError('canary_lost', `the canary has not arrived within ${within}`)
    }
    if (!json) print(oneLine(`the canary arrived after ${Math.round(result.ms)} ms, handled by ${result.worker}`))
  })
}
