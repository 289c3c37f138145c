/** The index of a design document's views (a view group): one index for all views, including those of Mango. */
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { rowsOf } from '../couch/schemas.ts'
import { segment } from '../couch/path.ts'

export interface ViewIndex {
  /**
   * Changes of the database that the index lacks. Until the next query, these include changes that are not documents
   * (`_security`). On a cluster, the fastest copy of each shard counts.
   */
  readonly pending: number
  /** Changes of the database that the index has. */
  readonly seq: number
  readonly isRunning: boolean
  /** Requests that wait for the index. */
  readonly waiting: number
  /** Hash of all that decides its content. In a database, design documents with equal signatures share an index. */
  readonly signature: string
  /** Size on disk. */
  readonly bytes: number
}

const info = z.object({
  view_index: z.object({
    updates_pending: z.object({ total: z.number() }),
    update_seq: z.number().optional(),
    updater_running: z.boolean().optional(),
    waiting_clients: z.number().optional(),
    signature: z.string(),
    sizes: z.object({ file: z.number().optional() }).optional(),
  }),
})

/** Path of a design document in a request. */
const pathOf = (ddocId: string) => `_design/${segment(ddocId.slice('_design/'.length))}`

/**
 * Reads the state of an index. Do not call it for a design document without views, whose index never seems built.
 * Throws `CouchError`: `not_found` if the design document is missing.
 *
 * @param ddocId `_design/name`
 */
export async function readViewIndex(
  couch: Couch,
  db: string,
  ddocId: string,
  options?: CallOptions,
): Promise<ViewIndex> {
  const path = `${pathOf(ddocId)}/_info`
  const { view_index: index } = await couch.request({ db, path, ...options }, info)
  return {
    pending: index.updates_pending.total,
    seq: index.update_seq ?? 0,
    isRunning: index.updater_running === true,
    waiting: index.waiting_clients ?? 0,
    signature: index.signature,
    bytes: index.sizes?.file ?? 0,
  }
}

/**
 * Has CouchDB bring every copy of the index up to date, and does not wait. Each call leaves a request waiting at each
 * copy, so do not repeat it during a build. Only `queryViewIndex` reports an error of the build.
 *
 * @param view any view of the design document
 */
export async function buildViewIndex(
  couch: Couch,
  db: string,
  ddocId: string,
  view: string,
  options?: CallOptions,
): Promise<void> {
  // A query of any one partition builds all shards.
  await queryView({ couch, db, ddocId, view }, { limit: 0, update: 'lazy', stable: true }, 1, options)
}

/** Queries the index: waits until one copy of each shard is up to date. Throws the error of a failed build. */
export async function queryViewIndex(
  couch: Couch,
  db: string,
  ddocId: string,
  view: string,
  options?: CallOptions,
): Promise<void> {
  await queryView({ couch, db, ddocId, view }, { limit: 0 }, Infinity, options)
}

interface View {
  readonly couch: Couch
  readonly db: string
  readonly ddocId: string
  readonly view: string
}

/** @param most maximum partitions to query, if the database is partitioned */
async function queryView(
  { couch, db, ddocId, view }: View,
  query: Query,
  most: number,
  options?: CallOptions,
): Promise<void> {
  const path = `${pathOf(ddocId)}/_view/${segment(view)}`
  try {
    await couch.request({ db, path, query, ...options }, rows)
  } catch (thrown) {
    const partitions = await partitionsIfRequired(couch, db, thrown, options)
    for (const partition of partitions.slice(0, most)) {
      await couch.request({ db, path: `_partition/${partition}/${path}`, query, ...options }, rows)
    }
  }
}

const rows = rowsOf(z.unknown())
const partitioned = z.object({ props: z.object({ partitioned: z.boolean().optional() }).optional() })
const shardsOf = z.object({ shards: z.record(z.templateLiteral([z.hex(), '-', z.hex()]), z.unknown()) })

type Query = Readonly<Record<string, string | number | boolean>>

/**
 * Returns the name of one partition in each shard: most views of a partitioned database require a partition. Rethrows
 * `thrown` if it has another cause.
 */
async function partitionsIfRequired(
  couch: Couch,
  db: string,
  thrown: unknown,
  options?: CallOptions,
): Promise<readonly string[]> {
  if (!isCouchError(thrown, 'bad_request')) throw thrown
  const { props } = await couch.request({ db, ...options }, partitioned)
  if (props?.partitioned !== true) throw thrown
  const { shards } = await couch.request({ db, path: '_shards', ...options }, shardsOf)
  return Object.keys(shards).map((range) => {
    const partition = partitionIn(range)
    if (partition !== undefined) return partition
    throw new CouchError('garbled', { request: `GET /${db}/_shards`, reason: `no partition is in the range ${range}` })
  })
}

/** Maximum tries: enough for thousands of shards, because their ranges have similar sizes. */
const MOST_NAMES = 100_000

/** A partition in a shard: as in CouchDB, the checksum of its name lies in the range. Undefined if none is found. */
function partitionIn(range: string): string | undefined {
  const [from, to] = range.split('-').map((end) => parseInt(end, 16)) as [number, number]
  for (let count = 0; count < MOST_NAMES; count++) {
    const at = crc32(String(count))
    if (at >= from && at <= to) return String(count)
  }
  return undefined
}
