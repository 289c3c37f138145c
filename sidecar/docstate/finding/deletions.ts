import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { withTimeout } from '../../core/timeout.ts'
import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import { writtenFrom } from '../../couch/written.ts'
import type { Partition } from '../../workers/partitioning.ts'
import { deletedOf, type DispatchTable } from '../classify.ts'
import { deletionType } from '../runs.ts'
import type { FeedPlaces } from './feed-places.ts'
import type { SelectedChanges, Selection } from './selected-changes.ts'

export interface DeletionsOptions {
  readonly database: Database
  readonly control: Database
  readonly table: () => DispatchTable
  readonly partition: Partition
  readonly places: FeedPlaces
  readonly selectedChanges: SelectedChanges
  /** Between two looks that no row has asked for. Milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** The same for all who come upon the deletion, so that it is made once. */
function deletionId(database: string, { _id, _rev }: StoredDoc): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([_id, _rev]))
    .digest('base64url')
  return `deletion:${database}:${hash.slice(0, 24)}`
}

/**
 * Makes a document of the control database for each deletion of a type that has a handler for it: a deleted document is in no index, so
 * that no list would find it again. How far they are made is a place in the feed, which all workers share; one of them at a time goes on from it.
 */
export interface Deletions {
  /** Something may be left to do. */
  readonly isBusy: boolean
  /** A row of the feed tells of a deleted document. */
  soon(): void
  /** Until the signal aborts; rejects with its reason. */
  run(signal: AbortSignal): Promise<void>
}

export function createDeletions(options: DeletionsOptions): Deletions {
  const { database, control, table, partition, places, selectedChanges, everyMs, clock, random, log } = options
  let isLooking = false
  let isAsked = true // what was deleted while no worker was there
  let wake = () => {}

  async function makeAll(type: string, signal: AbortSignal): Promise<void> {
    const pair = deletedOf({ type })
    const place = await places.of(pair, undefined, signal)
    for (let isLast = false; !isLast;) {
      const page = await selectedChanges(deletedIn(type), place.seq, { withDocs: true, signal })
      if (page.docs.length > 0) await make(type, page.docs, signal)
      place.seq = page.seq
      if (page.docs.length > 0) await places.keep(pair, place, signal)
      isLast = page.isLast
    }
  }

  async function make(type: string, tombstones: readonly StoredDoc[], signal: AbortSignal): Promise<void> {
    const docs = tombstones.map((deleted) => ({
      ...{ _id: deletionId(database.name, deleted), type: deletionType(type), state: 'run' },
      ...{ database: database.name, deleted },
    }))
    const rows = await control.bulk(
      docs.map((doc) => JSON.stringify(doc)),
      { signal },
    )
    for (const row of rows) {
      const written = writtenFrom(row) // a conflict: another worker, or this one before, has made it
      if (written.kind !== 'refused') continue
      throw new CouchError(written.code, { request: `POST ${control.name}/_bulk_docs`, reason: written.reason })
    }
  }

  async function look(signal: AbortSignal): Promise<void> {
    for (const { type } of table().deletions ?? []) {
      const pair = deletedOf({ type })
      if (partition.isOurs(pair, database.name)) await makeAll(type, signal)
      else places.forget(pair)
    }
  }

  return {
    get isBusy() {
      return (table().deletions ?? []).length > 0 && (isAsked || isLooking)
    },
    soon() {
      isAsked = true
      wake()
    },
    async run(signal) {
      partition.onChange(() => wake(), signal)
      for (;;) {
        signal.throwIfAborted()
        const woken = new Promise<void>((resolve) => (wake = resolve))
        isLooking = isAsked
        isAsked = false
        try {
          await look(signal)
        } catch (thrown) {
          if (!(thrown instanceof CouchError)) throw thrown
          isAsked = true
          log.warn({ code: thrown.code, reason: thrown.message }, 'cannot see to what was deleted; trying again')
          await clock.sleep(1000 + random() * 4000, signal)
          continue
        }
        isLooking = false
        await withTimeout(clock, everyMs * (0.8 + random() * 0.4), woken, signal)
      }
    },
  }
}

const deletedIn = (type: string): Selection => ({
  selector: { _deleted: true, type },
  matches: (doc) => doc._deleted === true && doc.type === type,
})
