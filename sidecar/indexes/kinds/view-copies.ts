/**
 * Views on a cluster: an index is up to date when every reachable copy is, and no build runs. While clients write, a
 * copy always lacks changes: only those that it lacked when the build began count.
 */
import { readIndexerTasks, type IndexerTask } from '../indexer-tasks.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import type { Kind, Servers } from './kind.ts'
import { ofViews } from './view.ts'
import { z } from 'zod'
import type { Couch } from '../../couch/client.ts'
import type { CallOptions } from '../../couch/database.ts'
import { requestNode } from '../../couch/node.ts'
import { dbInfo, names } from '../../couch/schemas.ts'
import { segment } from '../../couch/path.ts'

export function ofViewsWithCopies(servers: Servers): Kind {
  const { quick } = servers
  const views = ofViews(servers)
  const goals = new WeakMap<object, Goal>()
  return {
    ...views,
    hasCopies: true,
    begin: (index) => void goals.delete(index),
    async read(index, target, signal) {
      const progress = await views.read(index, target, signal)
      const isUpToDate = progress.lag === 0 || progress.seq >= target
      const known = goals.get(index)
      if (known && !isUpToDate) return progress
      const { database, ddoc } = index
      const [copies, tasks] = await Promise.all([
        ifAllowed(readIndexCopies(quick, database, ddoc, { signal })),
        ifAllowed(readIndexerTasks(quick, { signal })),
      ])
      const goal = known ?? new Goal()
      goals.set(index, goal)
      const stale = copies.filter((copy) => goal.isStale(copy))
      const running = tasks.filter((task) => task.database === database && task.ddoc === ddoc && goal.waitsFor(task))
      if (!isUpToDate || stale.length + running.length === 0) return progress
      return {
        seq: Math.min(target - 1, ...stale.map(({ seq }) => seq)),
        lag: Math.max(1, ...stale.map(({ pending }) => pending)),
        isRunning: running.length > 0 || stale.some((copy) => copy.isRunning),
      }
    },
  }
}

/** Empty if the server does not allow the request. */
async function ifAllowed<T>(reading: Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await reading
  } catch (thrown) {
    if (thrown instanceof CouchError && thrown.retry !== 'soon' && thrown.code !== 'not_found') return []
    throw thrown
  }
}

/** Runs to wait for on each copy: one from before the build began, then the one that the build requested. */
const RUNS = 2

/** Goal of one build. */
class Goal {
  /** By node: the position that a copy must reach, set when the copy is first seen. */
  readonly #seqs = new Map<string, number>()
  /** By node and shard: the runs seen so far. */
  readonly #runs = new Map<string, Set<string>>()

  isStale({ node, seq, pending }: IndexCopy): boolean {
    const goal = this.#seqs.get(node) ?? seq + pending
    this.#seqs.set(node, goal)
    return pending > 0 && seq < goal
  }

  waitsFor({ node, shard, pid }: IndexerTask): boolean {
    const copy = `${node} ${shard}`
    const runs = this.#runs.get(copy) ?? new Set()
    this.#runs.set(copy, runs.add(pid))
    return runs.size <= RUNS
  }
}

/*
 * The copies of an index on a cluster, one by one: the database itself reports only the fastest copy of each shard. The
 * endpoint is internal to CouchDB and not guaranteed: a copy that does not answer is left out.
 */

interface IndexCopy {
  readonly node: string
  /** Range of the shard, such as `00000000-7fffffff`. */
  readonly range: string
  /** Changes of this shard copy that the index has. */
  readonly seq: number
  /** Changes of this shard copy that the index lacks. */
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
 * Reads the copies in the shard that holds the design document; CouchDB does not report those in others. Throws
 * `CouchError`: `not_found` if the database is missing.
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
        const answer = await requestNode(couch, node, `${shard}/${ddoc}/_info`, copyAnswer, options)
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
