import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { createMutex } from '../../core/mutex.ts'
import type { Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import { createLocalDoc, readLocalDocs, type LocalDoc } from '../../couch/local.ts'
import type { Files } from '../../couch/shard-seqs.ts'
import type { Reading } from '../../couch/survey.ts'
import { parseEventId, type DatabaseEvent } from '../event-documents.ts'
import { unsure, type Known } from './lookout.ts'

/** Number of buckets. At most as many workers can share them. Each bucket is a document. */
export const BUCKETS = 64

export const bucketOf = (name: string): number => hash('md5', name, 'buffer').readUInt32LE() % BUCKETS

const idOf = (bucket: number) => `_local/couchdb-sidecar:databases:${bucket}`

/**
 * What the written events report about each database. The ledger is kept in `_local` documents of the database with the
 * events: it is lost together with them, has no revisions, and causes no change. It may be older than the events; then
 * they are written again. One exception: for a database that the ledger lacks, no `created` was ever written.
 */
export class Ledger {
  readonly #database: Database
  readonly #buckets = new Map<number, Map<string, Reading>>()
  readonly #documents = new Map<number, LocalDoc>()
  readonly #changed = new Set<number>()
  /** The bucket that is being written: earlier records may not be stored yet. */
  #saving: number | undefined
  /** The document that was written last. */
  #newest: LocalDoc | undefined
  /** Serializes writes: CouchDB keeps the `_local` document that arrives last, which must be the newest. */
  readonly #inTurn = createMutex()

  constructor(database: Database) {
    this.#database = database
  }

  /** Whether this bucket has been read. */
  has(bucket: number): boolean {
    return this.#buckets.has(bucket)
  }

  /** Reads these buckets as other workers left them, and forgets all other buckets. Throws `CouchError`. */
  async own(buckets: ReadonlySet<number>, signal: AbortSignal): Promise<void> {
    for (const bucket of this.#buckets.keys()) if (!buckets.has(bucket)) this.#buckets.delete(bucket)
    const missing = [...buckets].filter((bucket) => !this.has(bucket))
    const stored = await readLocalDocs(this.#database, missing.map(idOf), signal)
    for (const bucket of missing) {
      if (this.has(bucket)) continue // another call was faster, and may have recorded changes since
      this.#buckets.set(bucket, readingsIn(stored.get(idOf(bucket))))
    }
  }

  /** Forgets everything: the database was lost or replaced. */
  forget(): void {
    this.#buckets.clear()
    this.#changed.clear()
    this.#documents.clear()
    this.#newest = undefined
  }

  /** Whether the stored ledger is older than the last write here: an older copy was restored. Throws `CouchError`. */
  async isPutBack(signal: AbortSignal): Promise<boolean> {
    return (await this.#newest?.isPutBack(signal)) ?? false
  }

  /**
   * Finds events that a restored older copy lacks, and marks them as not written: the next sweep writes them. The copy
   * may be of all events, or of one shard range. Throws `CouchError`.
   */
  async findLost(signal: AbortSignal): Promise<void> {
    const read = async (event: DatabaseEvent) => {
      const docs = await this.#database.withPrefix(`${event}:`, { signal })
      return new Set(docs.map(({ _id }) => parseEventId(_id)?.database))
    }
    const [created, updated, deleted] = [await read('created'), await read('updated'), await read('deleted')]
    for (const name of this.names()) {
      const known = this.get(name)
      if (!created.has(name)) this.set(name, unsure(known))
      else if (known && known.changes > 0 && !updated.has(name)) this.set(name, { ...known, changes: 0 })
    }
    for (const name of created) {
      if (name === undefined || deleted.has(name) || !this.has(bucketOf(name))) continue
      if (!this.get(name)) this.set(name, unsure(undefined)) // its deletion may be the lost event
    }
  }

  names(): string[] {
    return [...this.#buckets.values()].flatMap((bucket) => [...bucket.keys()])
  }

  get(name: string): Known {
    return this.#buckets.get(bucketOf(name))?.get(name)
  }

  set(name: string, known: Known): void {
    const bucket = this.#buckets.get(bucketOf(name))
    const before = bucket?.get(name)
    if (!bucket) return
    if (known) bucket.set(name, known)
    else bucket.delete(name)
    if (!isDeepStrictEqual(fieldsOf(before), fieldsOf(known))) this.#changed.add(bucketOf(name))
  }

  /** Confirms a recorded position. Files that were not read before get their position. */
  confirm(name: string, found: Reading): void {
    const known = this.get(name)
    if (!known || known.seq === found.seq) return
    this.set(name, { ...known, seq: found.seq, files: { ...found.files, ...known.files } })
  }

  /**
   * Records and stores these readings. Throws `CouchError`, also if a bucket was forgotten or belongs to another worker
   * by now. Then nothing is recorded, and the caller must not write the events.
   */
  async note(known: ReadonlyMap<string, Reading>, signal: AbortSignal): Promise<void> {
    const buckets = [...known.keys()].map(bucketOf)
    if (!buckets.every((bucket) => this.has(bucket))) throw forgotten(this.#database.name)
    for (const [name, reading] of known) this.set(name, reading)
    if (buckets.some((bucket) => this.#changed.has(bucket) || bucket === this.#saving)) await this.save(signal)
  }

  /** Stores all changes. Throws `CouchError`. */
  async save(signal: AbortSignal): Promise<void> {
    await this.#inTurn(() => this.#save(signal))
  }

  async #save(signal: AbortSignal): Promise<void> {
    for (const bucket of [...this.#changed]) {
      this.#changed.delete(bucket)
      const readings = this.#buckets.get(bucket)
      if (!readings) continue // another worker's by now
      const document = this.#documents.get(bucket) ?? createLocalDoc(this.#database, idOf(bucket))
      this.#documents.set(bucket, document)
      const databases = Object.fromEntries([...readings].map(([name, known]) => [name, fieldsOf(known)]))
      this.#saving = bucket
      try {
        await document.write({ databases }, signal)
        this.#newest = document
      } catch (thrown) {
        this.#changed.add(bucket)
        throw thrown
      } finally {
        this.#saving = undefined
      }
    }
  }
}

const forgotten = (database: string) =>
  new CouchError('server', { request: `GET /${database}`, reason: 'the written events must be read again' })

/** A stored reading. */
type Fields = readonly [life: string, changes: number, files?: Files]

const fieldsOf = (known: Known): Fields | undefined => known && [known.life, known.changes, known.files ?? {}]

function readingsIn(doc: Doc | undefined): Map<string, Reading> {
  const databases = (doc?.databases ?? {}) as Readonly<Record<string, Fields>>
  return new Map(Object.entries(databases).map(([name, [life, changes, files]]) => [name, { life, changes, files }]))
}
