import type { Engine } from './docstate/engine.ts'
import type { Health } from './http/up.ts'

/** Well if the feed of every database is being followed. The reasons name databases, nothing secret. */
export function healthOf(engines: ReadonlyMap<string, Engine>): Health {
  if (engines.size === 0) return { ok: false, reasons: ['waiting for CouchDB'] }
  const reasons = [...engines.values()].flatMap((engine) => {
    const { database, following, trouble } = engine.health()
    return following ? [] : [`the feed of ${database} is not followed${trouble ? `: ${trouble}` : ' yet'}`]
  })
  return { ok: reasons.length === 0, reasons }
}
