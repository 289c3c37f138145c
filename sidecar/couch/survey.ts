import { z } from 'zod'
import type { Couch } from './client.ts'
import type { DbInfo } from './documents.ts'
import { CouchError } from './errors.ts'
import { dbInfo, names } from './schemas.ts'
import { extentOf, type Extent } from './shard-seqs.ts'

/** How far a database was when it was looked at. */
export interface Reading extends Extent {
  /** `instance_start_time`: another one is another database of the same name. */
  readonly life: string
}

/** At 238 characters at most, a page is far smaller than the longest answer that is read. */
const A_PAGE = 10_000

/** CouchDB takes a hundred names in a request (`max_db_number_for_dbs_info_req`). */
const A_REQUEST = 100

const infoRows = z.array(z.object({ key: z.string(), info: dbInfo.nullish() }))
type InfoRow = z.infer<typeof infoRows>[number]

/**
 * Names of all databases that are wanted, in their order. No more than a page (two or more) of
 * others is in memory. Throws `CouchError`.
 */
export async function listDatabases(
  couch: Couch,
  isWanted: (name: string) => boolean,
  signal: AbortSignal,
  aPage = A_PAGE,
): Promise<string[]> {
  const wanted: string[] = []
  for (let last = ''; ;) {
    const query = { startkey: last, limit: aPage }
    const page = await couch.request({ path: '_all_dbs', query, signal }, names)
    const news = page.filter((name) => name > last).sort() // PouchDB lists them as they come
    for (const name of news) if (isWanted(name)) wanted.push(name)
    if (page.length !== aPage || news.length === 0) return wanted // PouchDB has no pages: all come at once, each time
    last = news.at(-1)!
  }
}

/** How far each of these databases is, as far as it is there. Throws `CouchError`. */
export async function* readDatabases(
  couch: Couch,
  names: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<ReadonlyMap<string, Reading>> {
  for (let start = 0; start < names.length; start += A_REQUEST) {
    const keys = names.slice(start, start + A_REQUEST)
    const rows = await infosOf(couch, keys, signal)
    yield new Map(rows.flatMap(({ key, info }) => (info ? [[key, readingOf(info)] as const] : [])))
  }
}

async function infosOf(couch: Couch, keys: readonly string[], signal: AbortSignal): Promise<readonly InfoRow[]> {
  try {
    return await couch.request({ method: 'POST', path: '_dbs_info', body: { keys }, signal }, infoRows)
  } catch (thrown) {
    if (!(thrown instanceof CouchError) || thrown.retry !== 'never') throw thrown
    return Promise.all(keys.map((key) => infoOf(couch, key, signal))) // PouchDB has no such endpoint
  }
}

async function infoOf(couch: Couch, key: string, signal: AbortSignal): Promise<InfoRow> {
  try {
    return { key, info: await couch.request({ db: key, signal }, dbInfo) }
  } catch (thrown) {
    if (thrown instanceof CouchError && thrown.code === 'not_found') return { key }
    throw thrown
  }
}

const readingOf = ({ instance_start_time, update_seq }: DbInfo): Reading =>
  Object.assign(extentOf(update_seq), { life: instance_start_time })
