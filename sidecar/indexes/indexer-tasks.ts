import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'

/** A running build of one shard copy of an index. */
export interface IndexerTask {
  readonly node: string
  /** Process of this run on its node: the next run has another. */
  readonly pid: string
  /** Such as `shards/00000000-7fffffff/name.1767225600`. */
  readonly shard: string
  readonly database: string
  /** `_design/name` */
  readonly ddoc: string
  readonly kind: 'view' | 'search'
  /** May exceed the total while clients write. */
  readonly changesDone: number
  readonly changesTotal: number
}

/** Tasks of all types; other types have fewer fields. */
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

/** Reads the running builds of all nodes. For server admins only. Throws `CouchError`. */
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
