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
  /** Undefined for an unknown event. */
  readonly event: DatabaseEvent | undefined
}

/** The server's own `_db_updates`. Its life is that of the database `_global_changes`; 404 if that is missing. */
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
  /** Called when the feed starts, or resumes after a break: earlier events may have been missed. */
  readonly onAgain: () => void
  /** Called when the server gets or loses this feed. At first, the feed is assumed to exist. */
  readonly onAvailable: (isAvailable: boolean) => void
}

/** Follows the server's `_db_updates` from now on, until the signal aborts. A sweep must find events that it misses. */
export async function followServer(options: FollowServerOptions, signal: AbortSignal): Promise<void> {
  const { couch, clock, random, log, onEvent, onAgain, onAvailable } = options
  let isAvailable = true
  let broke = true
  const from = { seq: seqFrom('now') }
  for await (const event of follow({ source: dbUpdatesOf(couch), from, clock, random }, signal)) {
    switch (event.kind) {
      case 'rows':
        for (const { event: what, database } of event.rows) if (what) onEvent(what, database)
        break
      case 'connected':
        if (!isAvailable) onAvailable(true)
        else if (broke) onAgain()
        isAvailable = true
        broke = false
        break
      case 'broken':
        broke = true
        if (event.error.code === 'not_found' && isAvailable) {
          isAvailable = false
          log.warn(missing(couch.url))
          onAvailable(false)
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
  `databases’ own feeds and by polling, which costs more. To add it, as an admin: curl -X PUT ${url}/_global_changes`
