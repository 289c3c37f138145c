import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { createLocalDoc } from '../../couch/local.ts'
import { BEAT_ID } from './record.ts'

/**
 * Writes heartbeats of the run that holds a database, until `stop`. Each differs from the one before. They are in a
 * `_local` document, which causes no change rows. The record alone decides which run holds the database.
 */
export function beat(database: Database, run: string, clock: Clock, everyMs: number): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const local = createLocalDoc(database, BEAT_ID)

  async function goOn(): Promise<void> {
    for (let count = 1; ; count++) {
      try {
        await local.write({ run, count }, signal)
      } catch (thrown) {
        if (!isCouchError(thrown)) throw thrown // other requests meet and report the same error
      }
      await clock.sleep(everyMs, signal)
    }
  }

  const going = goOn().catch((thrown: unknown) => {
    if (!signal.aborted) throw thrown
  })
  return {
    async stop() {
      stopping.abort(new Error('done'))
      await going
    },
  }
}
