import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'

/** One copy of one shard of an index that is being built. */
export interface IndexerTask {
  readonly node: string
  /** Of the run, on its node: the next run has another. */
  readonly pid: string
  /** `shards/00000000-7fffffff/name.1767225600` */
  readonly shard: string
  readonly database: string
  /** `_design/name` */
  readonly ddoc: string
  readonly kind: 'view' | 'search'
  /** May exceed the total while clients write. */
  readonly changesDone: number
  readonly changesTotal: number
}

/** Also of other types, of which less is said. */
const tasks = z.array(
  z.object({
    type: z.string().optional(),
    node: z.string().optional(),
    pid: z.string().optional(),
    database: z.string().optional(),
    design_document: z.string().nullish(),
    changes_done: z.number().optional(),
    total_changes: z.number().optional(),
  }),
)

/** The indexes that are being built now, on all nodes. For server admins only. Throws `CouchError`. */
export async function readIndexerTasks(couch: Couch, options?: CallOptions): Promise<IndexerTask[]> {
  const all = await couch.request({ path: '_active_tasks', ...options }, tasks)
  return all.flatMap(
    ({ type, node = '', pid = '', database: shard = '', design_document: ddoc, changes_done, total_changes }) =>
      (type === 'indexer' || type === 'search_indexer') && ddoc
        ? [
            {
              ...{ node, pid, shard, database: nameOf(shard), ddoc, kind: type === 'indexer' ? 'view' : 'search' },
              ...{ changesDone: changes_done ?? 0, changesTotal: total_changes ?? 0 },
            },
          ]
        : [],
  )
}

const nameOf = (shard: string) => shard.replace(/^shards\/[^/]+\//, '').replace(/\.\d+$/, '')
