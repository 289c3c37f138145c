import { Semaphore } from '../core/semaphore.ts'
import type { BulkRow, Doc } from './documents.ts'
import type { Database } from './database.ts'
import { CouchError, isCouchError, type CouchErrorCode } from './couch-errors.ts'
import { textOf, writtenFrom, type Written } from './written.ts'

export interface Writer {
  /** Throws `CouchError` where the outcome is unknown. */
  write(doc: Doc, options?: WriteOptions): Promise<Written>
}

export interface WriteOptions {
  /** It ends something that was begun: before all that begin something, of other databases too. */
  readonly first?: boolean
  /** Called when it is sent, which may be long after it was asked for, and more than once. */
  readonly onSent?: () => void
  /** Once it is aborted, what has not been sent is not sent any more: then its reason is thrown. */
  readonly signal?: AbortSignal
}

export interface WriterOptions {
  /** The end of it: breaks off what is sent, and what waits. Its reason is thrown. */
  readonly signal: AbortSignal
  /** Without an answer for so long a request is given up: the outcome of its writes is unknown. Default 60,000. */
  readonly timeoutMs?: number
  /** Are added to. */
  readonly counts?: WriteCounts
  /** One is taken for each request; shared by the writers of many databases. Default one of its own. */
  readonly turns?: Semaphore
}

/** What a writer has done: requests, and what became of the documents in them. */
export type WriteCounts = Record<'requests' | Written['kind'] | 'unknown', number>

export const noWrites = (): WriteCounts => ({
  ...{ requests: 0, stored: 0, accepted: 0, conflict: 0, refused: 0, unknown: 0 },
})

interface Pending {
  readonly id: string
  readonly json: string
  readonly options: WriteOptions
  readonly resolve: (written: Written) => void
  readonly reject: (error: unknown) => void
}

type Kind = 'first' | 'other'
const kindOf = ({ options }: Pending): Kind => (options.first ? 'first' : 'other')

const MAX_DOCS = 1000
/** Rows of an answer of which all that follows is done in one turn of the event loop. */
const ROWS_TOGETHER = 250
const MAX_BYTES = 4 * 1024 * 1024
/** Refusals of a whole request that one document in it may have earned: it is halved until that one is alone. */
const ABOUT_ONE: readonly CouchErrorCode[] = ['too_large', 'bad_request']

/**
 * Group commit: one `_bulk_docs` at a time for a database, and whatever becomes ready meanwhile travels together in
 * the next. No write waits for a timer: a write that finds the writer idle, and a turn free, leaves at the end of the
 * event loop's turn. Where thousands of databases wait for turns, a request holds what is there when its turn comes.
 * One request at a time is not a limit but the fastest way: CouchDB commits a bulk request of a thousand in less time
 * than two of five hundred side by side (measured by `npm run bench`).
 *
 * Rows are matched by id, since servers may answer in another order; so a batch never holds an id twice.
 */
export function createWriter(database: Database, options: WriterOptions): Writer {
  const { signal, timeoutMs, counts = noWrites(), turns = new Semaphore(() => 1) } = options
  const waiting: Record<Kind, Pending[]> = { first: [], other: [] }
  /** Others were put off by the request before: the oldest leads this one, or what is large would wait for ever. */
  let othersLead = false
  let running = false
  /** Whether a turn is waited for, behind the others and before them. */
  const asked = { first: false, other: false }

  /** @param goesOn after a request of ours: what waits has gathered */
  function ask(goesOn = false): void {
    const kind = waiting.first.length > 0 ? 'first' : 'other'
    if (running || waiting[kind].length === 0 || asked.first || asked[kind]) return
    asked[kind] = true
    turns.run(() => run(kind, goesOn), kind === 'first', signal).catch(giveUp)
  }

  async function run(kind: Kind, goesOn: boolean): Promise<void> {
    asked[kind] = false
    if (running) return
    running = true
    if (!goesOn) await new Promise(setImmediate)
    const batch = takeBatch()
    if (batch.length > 0) await commit(batch)
    running = false
    ask(true)
  }

  function giveUp(reason: unknown): void {
    for (const { reject } of [...waiting.first.splice(0), ...waiting.other.splice(0)]) reject(reason)
  }

  /** Those that go first, and then of the others what there is room for. */
  function takeBatch(): Pending[] {
    const ids = new Set<string>()
    const batch: Pending[] = []
    let bytes = 0
    const leading = othersLead ? waiting.other.splice(0, 1) : []
    for (const pending of [...leading, ...waiting.first.splice(0), ...waiting.other.splice(0)]) {
      const { id, json, options, reject } = pending
      const fits = batch.length === 0 || (batch.length < MAX_DOCS && bytes + json.length <= MAX_BYTES)
      if (options.signal?.aborted) reject(options.signal.reason)
      else if (fits && !ids.has(id)) {
        ids.add(id)
        bytes += json.length
        batch.push(pending)
      } else waiting[kindOf(pending)].push(pending)
    }
    othersLead = !othersLead && waiting.other.length > 0 // never twice in a row: so is the oldest of the first
    return batch
  }

  /** `again`: they were in a request that was refused, of which some may have been stored all the same. */
  async function commit(batch: Pending[], again = false): Promise<void> {
    try {
      const texts = batch.map(({ json }) => json)
      counts.requests += 1
      const onSent = () => {
        for (const { options } of batch) options.onSent?.()
      }
      const limit = timeoutMs !== undefined && { timeoutMs }
      const rows = await database.bulk(texts, { signal, first: true, onSent, ...limit })
      void takeRows(batch, rows, again)
    } catch (thrown) {
      if (!isCouchError(thrown) || !ABOUT_ONE.includes(thrown.code)) for (const pending of batch) lose(pending, thrown)
      else if (batch.length === 1) settle(batch[0]!, { kind: 'refused', code: thrown.code, reason: thrown.reason })
      else {
        const half = Math.ceil(batch.length / 2)
        await commit(batch.slice(0, half), true)
        await commit(batch.slice(half), true)
      }
    }
  }

  /** A part at a time, so that the next request has left before all of what follows from this one is done. */
  async function takeRows(batch: readonly Pending[], rows: readonly BulkRow[], again: boolean): Promise<void> {
    const rowOf = new Map(rows.map((row) => [row.id, row]))
    for (const [i, pending] of batch.entries()) {
      if (i > 0 && i % ROWS_TOGETHER === 0) await new Promise(setImmediate)
      takeRow(pending, rowOf.get(pending.id), again)
    }
  }

  function takeRow(pending: Pending, row: BulkRow | undefined, again: boolean): void {
    const { id } = pending
    try {
      if (!row) throw unknown(id, 'no row for it')
      const written = writtenFrom(row)
      if (written.kind === 'conflict' && again) throw unknown(id, 'perhaps it is stored since the first try')
      settle(pending, written)
    } catch (thrown) {
      lose(pending, thrown)
    }
  }

  function settle({ resolve }: Pending, written: Written): void {
    counts[written.kind] += 1
    resolve(written)
  }

  function lose({ reject }: Pending, error: unknown): void {
    counts.unknown += 1
    reject(error)
  }

  return {
    write: (doc, options = {}) =>
      new Promise((resolve, reject) => {
        const json = textOf(doc)
        if (typeof json !== 'string') return resolve(json)
        if (signal.aborted) return reject(signal.reason as Error)
        const pending = { id: doc._id, json, options, resolve, reject }
        waiting[kindOf(pending)].push(pending)
        ask()
      }),
  }
}

const unknown = (id: string, why: string) =>
  new CouchError('garbled', { request: 'POST _bulk_docs', reason: `${id}: ${why}` })
