import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { seqFrom, type Seq } from '../../couch/documents.ts'
import { follow } from '../../feed/follow.ts'
import { parseLine, type Source } from '../../feed/source.ts'
import { isDatabaseEvent, type DatabaseEvent } from '../event-documents.ts'

/** One row of the server's `_db_updates`. */
export interface DbUpdate {
  readonly seq: Seq
  readonly database: string
  /** Undefined for what is neither of them. */
  readonly event: DatabaseEvent | undefined
}

/** The server's own `_db_updates`. Its life is that of the database behind it: 404 where there is none. */
export const dbUpdatesOf = (couch: Couch): Source<DbUpdate> => ({
  name: 'GET /_db_updates',
  life: (place, signal) => couch.db('_global_changes').life(place, { signal }),
  open: async (query, signal) => (await couch.stream({ path: '_db_updates', query, signal })).bytes,
  parse: (request, line) =>
    parseLine(request, line, ({ seq, db_name, type }) =>
      typeof db_name === 'string'
        ? { seq, database: db_name, event: isDatabaseEvent(type) ? type : undefined }
        : undefined,
    ),
})

export interface FollowServerOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly onEvent: (event: DatabaseEvent, database: string) => void
  /** The feed begins, or goes on after a break: what was before may have been missed. */
  readonly onAgain: () => void
  /** Whether the server has such a feed at all, when that changes; it is taken for granted at first. */
  readonly onThere: (isThere: boolean) => void
}

/** Follows the server's `_db_updates` from now on, until the signal aborts. What it misses, a sweep has to find. */
export async function followServer(options: FollowServerOptions, signal: AbortSignal): Promise<void> {
  const { couch, clock, random, log, onEvent, onAgain, onThere } = options
  let isThere = true
  let broke = true
  const from = { seq: seqFrom('now') }
  for await (const event of follow({ source: dbUpdatesOf(couch), from, clock, random }, signal)) {
    switch (event.kind) {
      case 'rows':
        for (const { event: what, database } of event.rows) if (what) onEvent(what, database)
        break
      case 'connected':
        if (!isThere) onThere(true)
        else if (broke) onAgain()
        isThere = true
        broke = false
        break
      case 'broken':
        broke = true
        if (event.error.code === 'not_found' && isThere) {
          isThere = false
          log.warn(missing(couch.url))
          onThere(false)
        } else log.debug({ code: event.error.code, reason: event.error.message }, 'the feed _db_updates is broken')
        break
      case 'restarted':
      case 'caught-up':
      case 'left':
    }
  }
}

const missing = (url: string) =>
  'the server has no feed of all databases: its database _global_changes is missing. Changes are found by the ' +
  `databases’ own feeds and by looking, which costs more. To add it, as an admin: curl -X PUT ${url}/_global_changes`
