import type { Random } from '../core/backoff.ts'
import { withTimeout } from '../core/timeout.ts'
import type { CouchError } from '../couch/couch-errors.ts'
import { withRetries } from '../couch/with-retries.ts'
import { createEngine, type Engine, type EngineOptions } from '../docstate/engine.ts'
import type { Partitioning } from '../workers/partitioning.ts'
import { matchAgain, matching } from './matching.ts'
import { prepare, type PrepareOptions } from './prepare.ts'

export interface FollowOptions
  extends Omit<EngineOptions, 'database' | 'partition' | 'prepare' | 'matchAgain'>, PrepareOptions {
  readonly random: Random
  readonly partitioning: Partitioning
  readonly onEngine: (engine: Engine) => void
  /** Resolves when the handler settings are known, so that no paused handler starts. Default: at once. */
  readonly whenSet?: (signal: AbortSignal) => Promise<void>
}

const AGAIN_MS = 10_000
/** Maximum wait for the list of workers. Without the list, all workers would try to claim every document. */
export const WHO_IS_THERE_MS = 3000

/**
 * Serves one database until the signal aborts. Waits until the database exists; the control database is created.
 * Deploys a missing design document, and runs the engine with the handlers that match it.
 */
export async function followDatabase(options: FollowOptions, signal: AbortSignal): Promise<void> {
  const { couch, name, partitioning, clock, random, log } = options
  const onTrouble = (error: CouchError, retryInMs: number) =>
    log.warn({ code: error.code, reason: error.message, retryInMs }, 'waiting for CouchDB')

  for (;;) {
    const read = () => prepare(options, signal)
    const prepared = await withRetries(read, { clock, random, signal, onTrouble })
    if (prepared) {
      let matched = matching(options, prepared)
      await withTimeout(clock, WHO_IS_THERE_MS, partitioning.known, signal)
      await options.whenSet?.(signal)
      const engine = createEngine({
        ...options,
        database: couch.db(name),
        table: matched.table,
        partition: partitioning.of(name),
        prepare: (until) => prepare(options, until),
        matchAgain: async (rev, until) => (matched = await matchAgain(options, matched, rev, until)).table,
      })
      options.onEngine(engine)
      return engine.run(signal)
    }
    log.warn(`database ${name} does not exist; waiting until it is created`)
    await clock.sleep(AGAIN_MS, signal)
  }
}
