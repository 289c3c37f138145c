import { Semaphore } from '../core/semaphore.ts'
import type { AdaptiveTimeout } from './adaptive-timeout.ts'
import type { BulkRow, Doc } from './documents.ts'
import type { Database } from './database.ts'
import { CouchError, isCouchError, type CouchErrorCode } from './couch-errors.ts'
import { textOf, writtenFrom, type Written } from './written.ts'

export interface Writer {
  /** Throws `CouchError` if the outcome is unknown. */
  write(doc: Doc, options?: WriteOptions): Promise<Written>
}

export interface WriteOptions {
  /** A write that ends begun work: it goes before all writes that begin work, also of other databases. */
  readonly first?: boolean
  /** Called when the write is sent: possibly long after the call, and more than once. */
  readonly onSent?: () => void
  /** An abort cancels a write that has not been sent; the write then throws the signal's reason. */
  readonly signal?: AbortSignal
}

export interface WriterOptions {
  /** Ends the writer: an abort cancels sent and waiting writes, which throw its reason. */
  readonly signal: AbortSignal
  /** Timeout of requests. After it, the outcome of the writes is unknown. Default 60 s. */
  readonly timeout?: AdaptiveTimeout
  /** Counters that the writer increments. */
  readonly counts?: WriteCounts
  /** Each request takes one permit. The writers of many databases share it. Default: a semaphore of its own. */
  readonly turns?: Semaphore
}

/** Counters of a writer: requests, and the outcomes of the documents in them. */
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
/** Rows of an answer that are processed in one turn of the event loop. */
const ROWS_TOGETHER = 250
const MAX_BYTES = 4 * 1024 * 1024
/** Refusals of a request that one document may have caused: the request is halved until that document is alone. */
const ABOUT_ONE: readonly CouchErrorCode[] = ['too_large', 'bad_request']

/**
 * Group commit: each database has one `_bulk_docs` at a time, and the next one takes all writes that arrive meanwhile.
 * No write waits for a timer. An idle writer sends a write at the end of the event loop's turn if a permit is free.
 * If thousands of databases wait for permits, a request takes all writes that wait when its permit comes.
 * One request at a time is the fastest way, not a limit. CouchDB commits one bulk request of 1000 faster than two
 * concurrent ones of 500 (measured by `npm run bench`).
 *
 * Rows are matched by id, because servers may answer in another order. So a batch never holds an id twice.
 */
export function createWriter(database: Database, options: WriterOptions): Writer {
  const { signal, timeout, counts = noWrites(), turns = new Semaphore(() => 1) } = options
  const waiting: Record<Kind, Pending[]> = { first: [], other: [] }
  /** The last request left `other` writes waiting: the oldest leads the next one, or a large one would wait forever. */
  let othersLead = false
  let running = false
  /** Whether the writer waits for a permit, with priority (`first`) or without (`other`). */
  const requested = { first: false, other: false }

  /** @param goesOn true after a request of this writer: writes have gathered meanwhile */
  function requestTurn(goesOn = false): void {
    const kind = waiting.first.length > 0 ? 'first' : 'other'
    if (running || waiting[kind].length === 0 || requested.first || requested[kind]) return
    requested[kind] = true
    turns.run(() => run(kind, goesOn), kind === 'first', signal).catch(giveUp)
  }

  async function run(kind: Kind, goesOn: boolean): Promise<void> {
    requested[kind] = false
    if (running) return
    running = true
    if (!goesOn) await new Promise(setImmediate)
    const batch = takeBatch()
    if (batch.length > 0) await commit(batch)
    running = false
    requestTurn(true)
  }

  function giveUp(reason: unknown): void {
    for (const { reject } of [...waiting.first.splice(0), ...waiting.other.splice(0)]) reject(reason)
  }

  /** Takes the `first` writes, then as many `other` writes as fit. */
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
    othersLead = !othersLead && waiting.other.length > 0 // never twice in a row, so the oldest `first` write leads next
    return batch
  }

  /** @param again true after the refusal of a request with these documents: some may be stored nevertheless */
  async function commit(batch: Pending[], again = false): Promise<void> {
    try {
      void takeRows(batch, await send(batch), again)
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

  async function send(batch: readonly Pending[]): Promise<BulkRow[]> {
    const texts = batch.map(({ json }) => json)
    let answered: (() => void) | undefined
    const onSent = () => {
      answered = timeout?.sent()
      for (const { options } of batch) options.onSent?.()
    }
    const limit = timeout && { timeoutMs: timeout.timeoutMs }
    counts.requests += 1
    try {
      return await database.bulk(texts, { signal, first: true, onSent, ...limit })
    } finally {
      answered?.()
    }
  }

  /** Processes rows in parts, so that the next request leaves before all rows of this one are done. */
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
      if (written.kind === 'conflict' && again) throw unknown(id, 'the first request may have stored it')
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
        requestTurn()
      }),
  }
}

const unknown = (id: string, why: string) =>
  new CouchError('garbled', { request: 'POST _bulk_docs', reason: `${id}: ${why}` })
