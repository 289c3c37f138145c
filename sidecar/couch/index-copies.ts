/**
 * The copies of an index on a cluster, one by one: what the database itself tells is of the fastest of each shard. Asked
 * by a way of CouchDB's that is its own, and not promised: a copy that does not answer is not in the list.
 */
import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import type { DbInfo } from './documents.ts'
import { CouchError } from './errors.ts'

export interface IndexCopy {
  readonly node: string
  /** Of the shard: `00000000-7fffffff`. */
  readonly range: string
  /** Changes of this copy of the shard that are in it. */
  readonly seq: number
  /** Those that are not. */
  readonly pending: number
  readonly isRunning: boolean
}

interface Shard {
  readonly range: string
  readonly nodes: readonly string[]
}

/**
 * The copies of the shard that holds the design document: of the others CouchDB does not tell. Throws `CouchError`:
 * `not_found` without the database.
 *
 * @param ddocId `_design/name`
 */
export async function readIndexCopies(
  couch: Couch,
  db: string,
  ddocId: string,
  options?: CallOptions,
): Promise<IndexCopy[]> {
  const [{ instance_start_time }, { range, nodes }] = await Promise.all([
    couch.request<DbInfo>({ db, ...options }),
    couch.request<Shard>({ db, path: `_shards/${encodeURIComponent(ddocId)}`, ...options }),
  ])
  const shard = encodeURIComponent(`shards/${range}/${db}.${instance_start_time}`)
  const ddoc = `_design/${encodeURIComponent(ddocId.slice('_design/'.length))}`
  const copies = await Promise.all(
    nodes.map(async (node): Promise<IndexCopy[]> => {
      try {
        const path = `_node/${encodeURIComponent(node)}/${shard}/${ddoc}/_info`
        const answer = await couch.request<CopyAnswer>({ path, ...options })
        const { pending_updates: pending, update_seq: seq = 0, updater_running } = answer.view_index ?? answer
        return pending === undefined ? [] : [{ node, range, seq, pending, isRunning: updater_running === true }]
      } catch (thrown) {
        options?.signal?.throwIfAborted()
        if (thrown instanceof CouchError) return []
        throw thrown
      }
    }),
  )
  return copies.flat()
}

interface OneCopy {
  readonly update_seq?: number
  readonly pending_updates?: number
  readonly updater_running?: boolean
}

type CopyAnswer = OneCopy & { readonly view_index?: OneCopy }
