import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { seqFrom, type Seq } from '../../couch/documents.ts'
import { follow } from '../../feed/follow.ts'
import { parseLine, type Source } from '../../feed/source.ts'

interface DbsRow {
  readonly seq: Seq
  readonly database: string
  readonly deleted: boolean
}

const PATH = '_node/_local/_dbs'

/**
 * A node's own list of the databases, one document for each. CouchDB does not promise that it can be read, but it tells
 * at once what a sweep would find later.
 */
const dbsOf = (couch: Couch): Source<DbsRow> => ({
  name: `GET /${PATH}/_changes`,
  life: async (signal) =>
    (await couch.request<{ instance_start_time: string }>({ path: PATH, signal })).instance_start_time,
  open: (query, signal) => couch.stream({ path: `${PATH}/_changes`, query, signal }),
  parse: (request, line) =>
    parseLine(request, line, ({ seq, id, deleted }) =>
      typeof id === 'string' ? { seq, database: id, deleted: deleted === true } : undefined,
    ),
})

export interface FollowDbsOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly random: Random
  /** One was made or deleted, or its shards have changed. */
  readonly onChange: (database: string, deleted: boolean) => void
  /** The feed goes on after a break: something may have been missed. */
  readonly onAgain: () => void
}

/** Follows the list of databases from now on, until the signal aborts, or until it turns out that there is none. */
export async function followDbs(options: FollowDbsOptions, signal: AbortSignal): Promise<void> {
  const { couch, clock, random, onChange, onAgain } = options
  let broke = false
  for await (const event of follow({ source: dbsOf(couch), from: { seq: seqFrom('now') }, clock, random }, signal)) {
    switch (event.kind) {
      case 'rows':
        for (const { database, deleted } of event.rows) onChange(database, deleted)
        break
      case 'connected':
        if (broke) onAgain()
        broke = false
        break
      case 'broken':
        if (event.error.retry === 'never') return
        broke = true
        break
      case 'restarted':
      case 'caught-up':
    }
  }
}
