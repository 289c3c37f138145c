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
  /** What is to run there. */
  readonly table: DispatchTable
  readonly clock: Clock
  readonly log: Logger
}

export interface Matched {
  /** What runs there; the same object as what is to run if that is all. */
  readonly table: DispatchTable
  /** Of the design document by which that was decided. */
  readonly rev: string
}

/** The handlers that the database's own machines know. The others are named and do not start. */
export function matching({ table, name, log }: MatchingOptions, ddoc: StoredDoc): Matched {
  const registrations = table.registrations.filter((registration) => {
    const faults = listMismatches(ddoc, [registration], table.machines)
    for (const fault of faults) log.error(`${name}: not started: ${fault}`)
    return faults.length === 0
  })
  const isWhole = registrations.length === table.registrations.length
  return { table: isWhole ? table : { ...table, registrations }, rev: ddoc._rev } // one table for thousands
}

/** So long a cluster may take until the copies that are asked have what the feed has told. */
const [LAG_TRIES, LAG_MS] = [20, 250]

/**
 * The same after a deploy, for which some may have waited. Where all run they go on, whatever it has brought: a new
 * version is deployed before it is started. Throws `CouchError`.
 *
 * @param rev as the feed has told it
 */
export async function matchAgain(
  options: MatchingOptions,
  before: Matched,
  rev: string,
  signal: AbortSignal,
): Promise<Matched> {
  const { couch, name, table, clock, log } = options
  if (before.table === table || before.rev === rev) return before
  const ask = () => couch.db(name).find(DDOC_ID, {}, { signal })
  let ddoc = await ask()
  for (let tries = 1; ddoc && compareRevs(ddoc._rev, rev) < 0 && tries < LAG_TRIES; tries++) {
    await clock.sleep(LAG_MS, signal)
    ddoc = await ask()
  }
  if (!ddoc) return before
  const matched = matching(options, ddoc)
  if (matched.table === table) log.info(`${name}: all handlers run, now that its design document was deployed`)
  return matched
}
