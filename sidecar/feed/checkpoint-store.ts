import { isoTime } from '../core/clock.ts'
import { seqFrom, seqText } from '../couch/documents.ts'
import type { Database } from '../couch/database.ts'
import { createLocalDoc } from '../couch/local.ts'
import type { Checkpoint } from './follow.ts'

/** State of the documents before a checkpoint when no work was left: the time when the next one is due. */
export interface Rest {
  /** Milliseconds since the epoch; undefined if no document is due. */
  readonly nextAt: number | undefined
}

/** A stored checkpoint; `rest` is set only if no work was left. */
export interface KeptCheckpoint extends Checkpoint {
  readonly rest?: Rest | undefined
}

export interface CheckpointStore {
  load(signal: AbortSignal): Promise<KeptCheckpoint | undefined>
  save(checkpoint: KeptCheckpoint, signal: AbortSignal): Promise<void>
  /** Whether the stored checkpoint is older than the last one loaded or saved. Throws `CouchError`. */
  isPutBack(signal: AbortSignal): Promise<boolean>
}

/**
 * Stores a checkpoint in a `_local` document of the database, so it is deleted with the database. An old checkpoint
 * costs time, never a document. Every member of the database may write the document, and `validate_doc_update` does
 * not run for it. So checkpoints are signed, and one without a signature by our credentials is ignored. A restored
 * older checkpoint is only old.
 *
 * @param owner a worker that is the only writer, or one name for all workers that visit the database in turn
 */
export function createCheckpointStore(database: Database, owner: string): CheckpointStore {
  const local = createLocalDoc(database, `_local/couchdb-sidecar:${owner}`)
  const sign = ({ seq, life, next_at }: Fields) =>
    database.sign(JSON.stringify({ database: database.name, owner, seq, life, next_at }))
  return {
    async load(signal) {
      const stored = (await local.read(signal)) as Fields | undefined
      if (typeof stored?.seq !== 'string' || stored.signature !== (await sign(stored))) return undefined
      const { seq, life, next_at } = stored
      return { seq: seqFrom(seq), life, rest: restFrom(next_at) }
    },
    async save({ seq, life, rest }, signal) {
      const nextAt = rest && { next_at: rest.nextAt === undefined ? null : isoTime(rest.nextAt) }
      const fields: Fields = { seq: seqText(seq), ...(life !== undefined && { life }), ...nextAt }
      await local.write({ ...fields, signature: await sign(fields) }, signal)
    },
    isPutBack: (signal) => local.isPutBack(signal),
  }
}

/** Fields of the stored document. `next_at` exists only if no work was left: null if no document is due. */
interface Fields {
  readonly seq: string
  readonly life?: string
  readonly next_at?: string | null
  readonly signature?: string
}

function restFrom(nextAt: Fields['next_at']): Rest | undefined {
  return nextAt === undefined ? undefined : { nextAt: nextAt === null ? undefined : Date.parse(nextAt) }
}
