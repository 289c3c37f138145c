import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { findDocuments } from '../docstate/operator/find.ts'
import type { Standing } from '../docstate/operator/standing.ts'
import { withCouch } from './connect.ts'
import { eachDatabase } from './each-database.ts'
import { readFilter, type FilterFlags } from './filter-flags.ts'
import { oneLine } from '../core/visible.ts'
import type { Terminal } from './terminal.ts'

export interface ListFlags extends FilterFlags {
  readonly json?: boolean
}

/** Maximum lines if no limit is given. */
const SHOWN = 100

/** Prints a line for each document that is stuck, or that the flags select. */
export async function list(
  terminal: Terminal,
  config: Config,
  db: string | undefined,
  flags: ListFlags,
): Promise<void> {
  const { json = false } = flags
  const filter = readFilter('list', flags)
  const limit = flags.limit === undefined && !json ? SHOWN : filter.limit
  const { signal } = terminal
  let shown = 0
  let hasMore = false
  await withCouch(config, async (couch) => {
    for await (const { name, counted } of eachDatabase(couch, config, db, terminal)) {
      if (!counted) continue
      const options = { database: couch.db(name), counted, filter, now: systemClock.now(), signal }
      for await (const found of findDocuments(options)) {
        hasMore = shown + found.length > limit
        terminal.redraw?.('')
        for (const { standing } of found.slice(0, limit - shown)) {
          terminal.print(json ? JSON.stringify({ database: name, ...standing }) : oneLine(lineOf(name, standing)))
          shown += 1
        }
        if (hasMore) return
      }
    }
  })
  if (json) return
  if (hasMore && flags.limit === undefined) terminal.note(`showing the first ${shown}; --limit <count> shows more`)
  else if (shown === 0) terminal.note('no document matches')
}

function lineOf(database: string, { id, type, handledIn, status, since, code, reason, nextAt }: Standing): string {
  const why = [code, reason].filter((part) => part !== undefined).join(': ')
  return [
    ...[database, id, `${type}/${handledIn}`, status],
    ...(since === undefined ? [] : [`since ${since}`]),
    ...(nextAt === undefined ? [] : [`next ${nextAt}`]),
    ...(why === '' ? [] : [why]),
  ].join('  ')
}
