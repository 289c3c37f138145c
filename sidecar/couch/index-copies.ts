/**
 * The copies of an index on a cluster, one by one: what the database itself tells is of the fastest of each shard. Asked
 * by a way of CouchDB's that is its own, and not promised: a copy that does not answer is not in the list.
 */
import { z } from 'zod'
import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import { CouchError } from './errors.ts'
import { askNode } from './node.ts'
import { dbInfo, names } from './schemas.ts'
import { segment } from './path.ts'

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

const oneCopy = z.object({
  update_seq: z.number().optional(),
  pending_updates: z.number().optional(),
  updater_running: z.boolean().optional(),
})
const copyAnswer = oneCopy.extend({ view_index: oneCopy.optional() })
const shardOf = z.object({ range: z.string(), nodes: names })

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
    couch.request({ db, ...options }, dbInfo),
    couch.request({ db, path: `_shards/${segment(ddocId)}`, ...options }, shardOf),
  ])
  const shard = segment(`shards/${range}/${db}.${instance_start_time}`)
  const ddoc = `_design/${segment(ddocId.slice('_design/'.length))}`
  const copies = await Promise.all(
    nodes.map(async (node): Promise<IndexCopy[]> => {
      try {
        const answer = await askNode(couch, node, `${shard}/${ddoc}/_info`, copyAnswer, options)
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
