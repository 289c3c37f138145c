import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { compareRevs } from '../couch/documents.ts'
import { listMismatches } from '../deploy/list-mismatches.ts'
import type { DispatchTable } from '../docstate/classify.ts'
import { DDOC_ID } from '../docstate/finding/pages.ts'

export interface MatchingOptions {
  readonly couch: Couch
  readonly name: string
  /** Handlers that are to run in the database. */
  readonly table: DispatchTable
  readonly clock: Clock
  readonly log: Logger
}

export interface Matched {
  /** Handlers that run. If all match, this is the same object as `table` of the options. */
  readonly table: DispatchTable
  /** Revision of the design document that was matched. */
  readonly rev: string
}

/** Selects the handlers that fit the machines of the database. The others are logged and do not start. */
export function matching({ table, name, log }: MatchingOptions, ddoc: StoredDoc): Matched {
  const registrations = table.registrations.filter((registration) => {
    const faults = listMismatches(ddoc, [registration], table.machines)
    for (const fault of faults) log.error(`${name}: not started: ${fault}`)
    return faults.length === 0
  })
  const isWhole = registrations.length === table.registrations.length
  return { table: isWhole ? table : { ...table, registrations }, rev: ddoc._rev } // one table for all
}

/** Reads, and the pause between them: on a cluster the copies that answer may be behind the feed. */
const [LAG_TRIES, LAG_MS] = [20, 250]

/**
 * Matches again after a deploy, for handlers that waited for it. If all handlers already run, they continue unchanged:
 * a new version is deployed before it is started. Throws `CouchError`.
 *
 * @param rev revision of the design document in the feed
 */
export async function matchAgain(
  options: MatchingOptions,
  before: Matched,
  rev: string,
  signal: AbortSignal,
): Promise<Matched> {
  const { couch, name, table, clock, log } = options
  if (before.table === table || before.rev === rev) return before
  const read = () => couch.db(name).find(DDOC_ID, {}, { signal })
  let ddoc = await read()
  for (let tries = 1; ddoc && compareRevs(ddoc._rev, rev) < 0 && tries < LAG_TRIES; tries++) {
    await clock.sleep(LAG_MS, signal)
    ddoc = await read()
  }
  if (!ddoc) return before
  const matched = matching(options, ddoc)
  if (matched.table === table) log.info(`${name}: all handlers run, now that its design document was deployed`)
  return matched
}
