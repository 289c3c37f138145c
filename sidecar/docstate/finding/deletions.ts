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
  /** Interval between checks that no feed row requests. Milliseconds. */
  readonly everyMs: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Id of a deletion, the same on every worker: each deletion gets one document. */
function deletionId(database: string, { _id, _rev }: StoredDoc): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([_id, _rev]))
    .digest('base64url')
  return `deletion:${database}:${hash.slice(0, 24)}`
}

/**
 * Writes a document into the control database for each deletion of a type with a deletion handler. A deleted document
 * is in no index, so no list would find it again. All workers share a checkpoint in the feed; one worker at a time
 * advances it.
 */
export interface Deletions {
  /** Whether deletions may be left to process. */
  readonly isBusy: boolean
  /** Called when a feed row shows a deleted document. */
  soon(): void
  /** Runs until the signal aborts; rejects with the signal's reason. */
  run(signal: AbortSignal): Promise<void>
}

export function createDeletions(options: DeletionsOptions): Deletions {
  const { database, control, table, partition, places, selectedChanges, everyMs, clock, random, log } = options
  let isLooking = false
  let isRequested = true // for deletions while no worker ran
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
      const written = writtenFrom(row) // conflict: another worker, or an earlier try, wrote the document
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
      return (table().deletions ?? []).length > 0 && (isRequested || isLooking)
    },
    soon() {
      isRequested = true
      wake()
    },
    async run(signal) {
      partition.onChange(() => wake(), signal)
      for (;;) {
        signal.throwIfAborted()
        const woken = new Promise<void>((resolve) => (wake = resolve))
        isLooking = isRequested
        isRequested = false
        try {
          await look(signal)
        } catch (thrown) {
          if (!(thrown instanceof CouchError)) throw thrown
          isRequested = true
          log.warn({ code: thrown.code, reason: thrown.message }, 'cannot record deletions; trying again')
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
