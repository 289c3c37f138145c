/** The index of a design document's views (a view group): one index for all of them, Mango's too. */
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { rowsOf } from '../couch/schemas.ts'
import { segment } from '../couch/path.ts'

export interface ViewIndex {
  /**
   * Changes of the database that are not in it yet. Counts what is no document, too (`_security`), until it is asked.
   * Of the fastest copy of each shard, on a cluster.
   */
  readonly pending: number
  /** Changes of the database that are in it. */
  readonly seq: number
  readonly isRunning: boolean
  /** Requests that wait for it. */
  readonly waiting: number
  /** Of all that decides what is in it. Two design documents of one database with the same signature share an index. */
  readonly signature: string
  /** On disk. */
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

/** What a design document's index is called in a request. */
const pathOf = (ddocId: string) => `_design/${segment(ddocId.slice('_design/'.length))}`

/**
 * How far the index is. A design document without views is answered as if nothing of it were ever built, so do not ask.
 * Throws `CouchError`: `not_found` without the design document.
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
 * Has CouchDB bring every copy of the index up to date, and does not wait for it. Leaves one more waiting at the index
 * for each copy, so do not repeat it while it runs. What goes wrong in the building is not told: `askViewIndex` is.
 *
 * @param view any of the design document's
 */
export async function buildViewIndex(
  couch: Couch,
  db: string,
  ddocId: string,
  view: string,
  options?: CallOptions,
): Promise<void> {
  // For a partition of any name it has all shards built.
  await queryView({ couch, db, ddocId, view }, { limit: 0, update: 'lazy', stable: true }, 1, options)
}

/** As a query would: waits until one copy of each shard is up to date. Throws what went wrong in the building. */
export async function askViewIndex(
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

/** @param most partitions that are asked, where the database has them */
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
    const partitions = await partitionsIfAsked(couch, db, thrown, options)
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
 * Most views of a partitioned database are asked by partition. Names of one in each shard; whatever else is the matter is
 * thrown.
 */
async function partitionsIfAsked(
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

/** Enough for databases of thousands of shards; their ranges are alike. */
const MOST_NAMES = 100_000

/** CouchDB puts a partition into the shard in whose range the checksum of its name is. Undefined: none was found. */
function partitionIn(range: string): string | undefined {
  const [from, to] = range.split('-').map((end) => parseInt(end, 16)) as [number, number]
  for (let count = 0; count < MOST_NAMES; count++) {
    const at = crc32(String(count))
    if (at >= from && at <= to) return String(count)
  }
  return undefined
}
