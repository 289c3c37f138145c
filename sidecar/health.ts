import type { CredentialsCheck } from './couch/credentials-check.ts'
import type { Engine } from './docstate/engine.ts'
import type { Health } from './http/up.ts'

/** Well if CouchDB lets the sidecar in, and the feed of every database is followed. The reasons hold nothing secret. */
export function healthOf(engines: ReadonlyMap<string, Engine>, { refusal }: Pick<CredentialsCheck, 'refusal'>): Health {
  if (engines.size === 0) return { ok: false, reasons: ['waiting for CouchDB'] }
  const refused = refusal === undefined ? [] : ['CouchDB refuses the sidecar, see its log']
  const feeds = [...engines.values()].flatMap((engine) => {
    const { database, following, trouble } = engine.health()
    return following ? [] : [`the feed of ${database} is not followed${trouble ? `: ${trouble}` : ' yet'}`]
  })
  const reasons = [...refused, ...feeds]
  return { ok: reasons.length === 0, reasons }
}
