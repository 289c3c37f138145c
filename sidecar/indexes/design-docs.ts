import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import { seqText, type StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { seq, stored, storedDoc } from '../couch/schemas.ts'

/** The design documents of a database, and its position when they were read. */
export interface DesignDocs {
  readonly seq: number
  readonly docs: readonly StoredDoc[]
  /** No design document has changed since the last read; `docs` is empty. */
  readonly areSame: boolean
}

const answer = z.object({
  update_seq: seq,
  rows: z.array(z.object({ id: z.string(), value: stored, doc: storedDoc.nullish() })),
})

const ALL = { startkey: '_design/', endkey: '_design0', update_seq: true }

/** Reads design documents in one request, with their bodies only if a revision is new. */
export class DesignDocsReader {
  readonly #couch: Couch
  /** Revisions of the design documents as text, by database. */
  readonly #known = new Map<string, string>()

  constructor(couch: Couch) {
    this.#couch = couch
  }

  /** Undefined if the database is missing. Throws `CouchError`. */
  async read(database: string, signal: AbortSignal): Promise<DesignDocs | undefined> {
    try {
      const known = this.#known.get(database)
      if (known === undefined) return await this.#readAll(database, signal)
      const { seq, revs } = await this.#request(database, false, signal)
      return revs === known ? { seq, docs: [], areSame: true } : await this.#readAll(database, signal)
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown
      this.forget(database)
      return undefined
    }
  }

  forget(database: string): void {
    this.#known.delete(database)
  }

  /** The next read of each database returns all design documents as new. */
  forgetAll(): void {
    this.#known.clear()
  }

  async #readAll(database: string, signal: AbortSignal): Promise<DesignDocs> {
    const { seq, revs, docs } = await this.#request(database, true, signal)
    this.#known.set(database, revs)
    return { seq, docs, areSame: false }
  }

  async #request(database: string, include_docs: boolean, signal: AbortSignal) {
    const request = { db: database, path: '_all_docs', query: { ...ALL, include_docs }, signal }
    const { update_seq, rows } = await this.#couch.request(request, answer)
    return {
      seq: parseInt(seqText(update_seq)) || 0,
      revs: rows.map(({ id, value }) => `${id} ${value.rev}`).join('\n'),
      docs: rows.flatMap(({ doc }) => (doc ? [doc] : [])),
    }
  }
}
