import { isoTime } from '../core/clock.ts'
import { seqFrom, seqText } from '../couch/documents.ts'
import type { Database } from '../couch/database.ts'
import { createLocalDoc } from '../couch/local.ts'
import type { Checkpoint } from './follow.ts'

/** How it was with the documents before a checkpoint when nothing was left to do: when the next one is due, if any is. */
export interface Rest {
  /** Milliseconds since the epoch. */
  readonly nextAt: number | undefined
}

/** A checkpoint that is kept; `rest` only if there was nothing left to do. */
export interface KeptCheckpoint extends Checkpoint {
  readonly rest?: Rest | undefined
}

export interface CheckpointStore {
  load(signal: AbortSignal): Promise<KeptCheckpoint | undefined>
  save(checkpoint: KeptCheckpoint, signal: AbortSignal): Promise<void>
  /** Whether what is kept is older than what was loaded or saved last. Throws `CouchError`. */
  isPutBack(signal: AbortSignal): Promise<boolean>
}

/**
 * Keeps a checkpoint in a `_local` document of the database: it goes with the database. One that is too old costs time, never
 * a document. Every member of the database may write there, and no guard is asked: so checkpoints are signed, and one
 * that is not, or not by our credentials, is none. An older one that was restored is too old, no more.
 *
 * @param owner whose it is: a worker's, that alone writes it, or of all who visit the database one after the other
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

/** As they are kept. `next_at` is there only if there was nothing left to do: null if nothing is due. */
interface Fields {
  readonly seq: string
  readonly life?: string
  readonly next_at?: string | null
  readonly signature?: string
}

function restFrom(nextAt: Fields['next_at']): Rest | undefined {
  return nextAt === undefined ? undefined : { nextAt: nextAt === null ? undefined : Date.parse(nextAt) }
}
