import { Slots } from '../core/slots.ts'
import type { Doc } from './documents.ts'
import type { Database } from './database.ts'
import { CouchError, codeOf, isCouchError, type CouchErrorCode } from './errors.ts'

/** What became of one write. An answer that did not come, or came garbled, is thrown instead: nobody knows then. */
export type Written =
  | { readonly kind: 'stored'; readonly rev: string }
  /** A cluster's 202: at least one copy has it, but not the quorum. Whoever needs to have won, has lost. */
  | { readonly kind: 'accepted'; readonly rev: string }
  | { readonly kind: 'conflict' }
  /** By `validate_doc_update`, `_security`, or because such a document cannot be stored or has no JSON. */
  | { readonly kind: 'refused'; readonly code: CouchErrorCode; readonly reason: string }

export interface Writer {
  /** Throws `CouchError` where the outcome is unknown. */
  write(doc: Doc, options?: WriteOptions): Promise<Written>
}

export interface WriteOptions {
  /** It ends something that was begun: before all that begin something, of other databases too. */
  readonly first?: boolean
  /** Called when its turn has come, which may be long after it was asked for, and more than once. */
  readonly onSent?: () => void
}

export interface WriterOptions {
  readonly signal: AbortSignal
  /** Without an answer for so long a request is given up: nobody knows what became of its writes. Default 60,000. */
  readonly timeoutMs?: number
  /** Are added to. */
  readonly counts?: WriteCounts
  /** One is taken for each request; shared by the writers of many databases. Default one of its own. */
  readonly turns?: Slots
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

const MAX_DOCS = 1000
const MAX_BYTES = 4 * 1024 * 1024
/** Refusals of a whole request that one document in it may have earned: it is halved until that one is alone. */
const ABOUT_ONE: readonly CouchErrorCode[] = ['too_large', 'bad_request']

/**
 * Group commit: one `_bulk_docs` at a time for a database, and whatever becomes ready meanwhile travels together in
 * the next. Nobody waits for a timer: a write that finds the writer idle, and a turn free, leaves at the end of the
 * event loop's turn. Where thousands of databases wait for turns, a request holds what is there when its turn comes.
 * One request at a time is not a limit but the fastest way: CouchDB commits a bulk request of a thousand in less time
 * than two of five hundred side by side (measured by `npm run bench`).
 *
 * Rows are matched by id, since servers may answer in another order; so a batch never holds an id twice.
 */
export function createWriter(database: Database, options: WriterOptions): Writer {
  const { signal, timeoutMs, counts = noWrites(), turns = new Slots(() => 1) } = options
  let waiting: Pending[] = []
  let running = false
  /** Whether a turn is waited for, behind the others and before them. */
  const asked = { first: false, other: false }

  /** @param goesOn after a request of ours: what waits has gathered */
  function ask(first: boolean, goesOn = false): void {
    if (running || asked.first || (asked.other && !first)) return
    const kind = first ? 'first' : 'other'
    asked[kind] = true
    turns.take(() => void run(kind, goesOn), first)
  }

  async function run(kind: keyof typeof asked, goesOn: boolean): Promise<void> {
    asked[kind] = false
    if (!running && waiting.length > 0) {
      running = true
      if (!goesOn) await new Promise(setImmediate)
      await commit(takeBatch())
      running = false
      const isFirst = waiting.some(({ options }) => options.first)
      if (waiting.length > 0) ask(isFirst, true)
    }
    turns.leave()
  }

  function takeBatch(): Pending[] {
    const ids = new Set<string>()
    const batch: Pending[] = []
    const left: Pending[] = []
    let bytes = 0
    for (const pending of waiting) {
      const fits = batch.length === 0 || (batch.length < MAX_DOCS && bytes + pending.json.length <= MAX_BYTES)
      if (fits && !ids.has(pending.id)) {
        ids.add(pending.id)
        bytes += pending.json.length
        batch.push(pending)
      } else left.push(pending)
    }
    waiting = left
    return batch
  }

  /** `again`: they were in a request that was refused, of which some may have been stored all the same. */
  async function commit(batch: Pending[], again = false): Promise<void> {
    try {
      const texts = batch.map(({ json }) => json)
      counts.requests += 1
      for (const { options } of batch) options.onSent?.()
      const rows = await database.bulk(texts, { signal, first: true, ...(timeoutMs !== undefined && { timeoutMs }) })
      const rowOf = new Map(rows.map((row) => [row.id, row]))
      for (const pending of batch) {
        const { id } = pending
        const row = rowOf.get(id)
        const written = row && writtenFrom(row)
        if (written?.kind === 'conflict' && again)
          lose(pending, unknown(id, 'perhaps it is stored since the first try'))
        else if (written) settle(pending, written)
        else lose(pending, unknown(id, 'no row for it'))
      }
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
        waiting.push({ id: doc._id, json, options, resolve, reject })
        ask(options.first === true)
      }),
  }
}

const unknown = (id: string, why: string) =>
  new CouchError('garbled', { request: 'POST _bulk_docs', reason: `${id}: ${why}` })

/** A cycle or a BigInt has no JSON. */
function textOf(doc: Doc): string | Written {
  if (typeof doc._id !== 'string' || doc._id === '') {
    return { kind: 'refused', code: 'bad_request', reason: `expected an _id, got ${JSON.stringify(doc._id)}` }
  }
  try {
    return JSON.stringify(doc)
  } catch (thrown) {
    return { kind: 'refused', code: 'bad_request', reason: (thrown as Error).message }
  }
}

function writtenFrom(row: { rev?: string; accepted?: boolean; error?: string; reason?: string }): Written {
  if (row.rev !== undefined && row.error === undefined) {
    return { kind: row.accepted ? 'accepted' : 'stored', rev: row.rev }
  }
  if (row.error === 'conflict') return { kind: 'conflict' }
  const reason = row.reason ?? row.error ?? 'no reason given'
  return { kind: 'refused', code: statusOfRow[row.error ?? ''] ?? codeOf(400), reason }
}

/** `_bulk_docs` says in a word what a single PUT says in a status. */
const statusOfRow: Readonly<Record<string, CouchErrorCode>> = {
  forbidden: 'forbidden',
  unauthorized: 'unauthorized',
  document_too_large: 'too_large',
}
