import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import { seqText, type StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { seq, stored, storedDoc } from '../couch/schemas.ts'

/** The design documents of a database, and where it was when they were read. */
export interface DesignDocs {
  readonly seq: number
  readonly docs: readonly StoredDoc[]
  /** None has changed since they were last asked for. */
  readonly areSame: boolean
}

const answer = z.object({
  update_seq: seq,
  rows: z.array(z.object({ id: z.string(), value: stored, doc: storedDoc.nullish() })),
})

const ALL = { startkey: '_design/', endkey: '_design0', update_seq: true }

/** Reads design documents in one request, their bodies only when one of them is new. */
export class DesignDocsReader {
  readonly #couch: Couch
  /** By database; the revisions as a text. */
  readonly #known = new Map<string, string>()

  constructor(couch: Couch) {
    this.#couch = couch
  }

  /** Undefined where there is no such database. Throws `CouchError`. */
  async read(database: string, signal: AbortSignal): Promise<DesignDocs | undefined> {
    try {
      const known = this.#known.get(database)
      if (known === undefined) return await this.#readAll(database, signal)
      const { seq, revs } = await this.#ask(database, false, signal)
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

  /** The next time all are read as if they were new. */
  forgetAll(): void {
    this.#known.clear()
  }

  async #readAll(database: string, signal: AbortSignal): Promise<DesignDocs> {
    const { seq, revs, docs } = await this.#ask(database, true, signal)
    this.#known.set(database, revs)
    return { seq, docs, areSame: false }
  }

  async #ask(database: string, include_docs: boolean, signal: AbortSignal) {
    const request = { db: database, path: '_all_docs', query: { ...ALL, include_docs }, signal }
    const { update_seq, rows } = await this.#couch.request(request, answer)
    return {
      seq: parseInt(seqText(update_seq)) || 0,
      revs: rows.map(({ id, value }) => `${id} ${value.rev}`).join('\n'),
      docs: rows.flatMap(({ doc }) => (doc ? [doc] : [])),
    }
  }
}
