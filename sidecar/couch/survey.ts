import { z } from 'zod'
import type { Clock } from '../core/clock.ts'
import { Condition } from '../core/condition.ts'
import type { Couch } from './client.ts'
import type { DbInfo } from './documents.ts'
import { CouchError } from './couch-errors.ts'
import { dbInfo, names } from './schemas.ts'
import { extentOf, type Extent } from './shard-seqs.ts'

/** Position of a database at the time of a read. */
export interface Reading extends Extent {
  /** `instance_start_time`: a different value means a different database of the same name. */
  readonly life: string
  /** Copies of each document; 1 if the server does not report the number. */
  readonly copies?: number | undefined
}

/** Names per page. A name has at most 238 characters, so a page is far below the size limit of an answer. */
const A_PAGE = 10_000

/** Names per request: CouchDB accepts at most 100 (`max_db_number_for_dbs_info_req`). */
const A_REQUEST = 100

const infoRows = z.array(z.object({ key: z.string(), info: dbInfo.nullish() }))
type InfoRow = z.infer<typeof infoRows>[number]

/**
 * Names of all databases that `isWanted` accepts, in order. At most one page of other names is in memory.
 * `aPage` must be 2 or more. Throws `CouchError`.
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
    const news = page.filter((name) => name > last).sort() // PouchDB does not sort them
    for (const name of news) if (isWanted(name)) wanted.push(name)
    if (page.length !== aPage || news.length === 0) return wanted // PouchDB has no paging: each answer holds all names
    last = news.at(-1)!
  }
}

/** Reads the positions of these databases; a missing database is left out. Throws `CouchError`. */
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

/** Reads the position of one database; undefined if the database is missing. Throws `CouchError`. */
export async function readDatabase(couch: Couch, name: string, signal: AbortSignal): Promise<Reading | undefined> {
  const { info } = await infoOf(couch, name, signal)
  return info ? readingOf(info) : undefined
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

const readingOf = ({ instance_start_time, update_seq, cluster }: DbInfo): Reading =>
  Object.assign(extentOf(update_seq), { life: instance_start_time, copies: cluster?.n ?? 1 })

/** Lists and reads many databases. `createSurvey` serves one caller, `createSharedSurvey` several at once. */
export interface Survey {
  /** See `listDatabases`. */
  list(isWanted: (name: string) => boolean, signal: AbortSignal): Promise<string[]>
  /** See `readDatabases`. Results are never older than the call. */
  read(names: readonly string[], signal: AbortSignal): AsyncIterable<ReadonlyMap<string, Reading>>
}

export const createSurvey = (couch: Couch): Survey => ({
  list: (isWanted, signal) => listDatabases(couch, isWanted, signal),
  read: (names, signal) => readDatabases(couch, names, signal),
})

export interface SharedSurveyOptions {
  readonly couch: Couch
  readonly clock: Clock
  /** Aborts all requests. */
  readonly signal: AbortSignal
  /** How long a call waits for other calls to join it, milliseconds. Default 300. */
  readonly joinMs?: number
}

/**
 * One survey for all periodic runs of a process. These runs are due at the same time (`core/periodic.ts`), so calls
 * within `joinMs` share requests. A call joins only requests that have not begun: no answer is older than its call.
 */
export function createSharedSurvey({ couch, clock, signal, joinMs = 300 }: SharedSurveyOptions): Survey {
  const list = join<ListCall>(async (calls) => {
    const give = (name: string) => {
      for (const call of calls) if (call.isWanted(name)) call.names.push(name)
      return false
    }
    await listDatabases(couch, give, signal)
  })
  const read = join<ReadCall>(async (calls) => {
    const names = [...new Set(calls.flatMap((call) => [...call.names]))]
    for await (const readings of readDatabases(couch, names, signal)) for (const call of calls) call.take(readings)
  })

  /** Collects calls for `joinMs`, then does the work for all of them. */
  function join<C extends Call>(work: (calls: readonly C[]) => Promise<void>): (call: C) => void {
    let waiting: C[] = []
    const run = async () => {
      await clock.sleep(joinMs, signal).catch(() => undefined)
      const calls = waiting
      waiting = []
      await work(calls).then(
        () => calls.forEach((call) => call.end()),
        (thrown: unknown) => calls.forEach((call) => call.end(thrown)),
      )
    }
    return (call) => {
      if (waiting.push(call) === 1) void run()
    }
  }

  return {
    async list(isWanted, signal) {
      const call = new ListCall(isWanted)
      list(call)
      await call.ended(signal)
      return call.names
    },
    async *read(names, signal) {
      const call = new ReadCall(names)
      read(call)
      yield* call.readings(signal)
    },
  }
}

/** A call that shares its requests with other calls. */
class Call {
  protected readonly changed = new Condition()
  protected isOver = false
  protected error: Error | undefined

  end(error?: unknown): void {
    this.isOver = true
    this.error = error as Error | undefined
    this.changed.changed()
  }

  /** Resolves when the shared requests end. Throws their error, or the signal's reason. */
  async ended(signal: AbortSignal): Promise<void> {
    await this.changed.until(() => this.isOver, signal)
    if (this.error) throw this.error
  }
}

class ListCall extends Call {
  readonly names: string[] = []
  readonly isWanted: (name: string) => boolean

  constructor(isWanted: (name: string) => boolean) {
    super()
    this.isWanted = isWanted
  }
}

class ReadCall extends Call {
  readonly names: ReadonlySet<string>
  readonly #found: ReadonlyMap<string, Reading>[] = []

  constructor(names: readonly string[]) {
    super()
    this.names = new Set(names)
  }

  take(readings: ReadonlyMap<string, Reading>): void {
    const own = new Map([...readings].filter(([name]) => this.names.has(name)))
    if (own.size === 0) return
    this.#found.push(own)
    this.changed.changed()
  }

  async *readings(signal: AbortSignal): AsyncGenerator<ReadonlyMap<string, Reading>> {
    for (;;) {
      await this.changed.until(() => this.#found.length > 0 || this.isOver, signal)
      const next = this.#found.shift()
      if (!next) return this.ended(signal)
      yield next
    }
  }
}
