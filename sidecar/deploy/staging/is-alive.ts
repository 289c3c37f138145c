import type { Database } from '../../couch/database.ts'
import type { Surroundings } from './surroundings.ts'
import { BEAT_ID, RECORD_ID, type Holder, type StoredRecord } from './record.ts'

const LOOKS = 20

/**
 * Whether whoever holds the record writes a heartbeat, or does anything at all to it, while it is watched. No clock of
 * another machine is believed: what counts is that something changes.
 */
export async function isAlive(
  database: Database,
  there: StoredRecord & { readonly holder: Holder },
  { clock, deadAfterMs, onProgress, signal }: Surroundings,
): Promise<boolean> {
  onProgress({ kind: 'watching', database: database.name, holder: there.holder, forMs: deadAfterMs })
  const sign = async () => JSON.stringify(await database.find(BEAT_ID, {}, { signal }))
  const revision = async () => (await database.find(RECORD_ID, {}, { signal }))?._rev
  const first = await sign()
  for (let look = 0; look < LOOKS; look++) {
    await clock.sleep(deadAfterMs / LOOKS, signal)
    if ((await sign()) !== first || (await revision()) !== there.rev) return true
  }
  return false
}
