import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'

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
  /** May exceed the total while somebody writes. */
  readonly changesDone: number
  readonly changesTotal: number
}

interface Task {
  readonly type?: string
  readonly node?: string
  readonly pid?: string
  /** Of a shard: `shards/00000000-7fffffff/name.1767225600`. */
  readonly database?: string
  readonly design_document?: string
  readonly changes_done?: number
  readonly total_changes?: number
}

/** The indexes that are being built now, on all nodes. For server admins only. Throws `CouchError`. */
export async function readIndexerTasks(couch: Couch, options?: CallOptions): Promise<IndexerTask[]> {
  const tasks = await couch.request<Task[]>({ path: '_active_tasks', ...options })
  return tasks.flatMap(
    ({ type, node = '', pid = '', database: shard = '', design_document: ddoc, changes_done, total_changes }) =>
      (type === 'indexer' || type === 'search_indexer') && ddoc !== undefined
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
