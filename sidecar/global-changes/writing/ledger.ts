import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { createMutex } from '../../core/mutex.ts'
import type { Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import { createLocalDoc, readLocalDocs, type LocalDoc } from '../../couch/local.ts'
import type { Files } from '../../couch/shard-seqs.ts'
import type { Reading } from '../../couch/survey.ts'
import type { Known } from './lookout.ts'

/** So many parts can be shared by as many workers; each is a document of its own. */
export const BUCKETS = 64

export const bucketOf = (name: string): number => hash('md5', name, 'buffer').readUInt32LE() % BUCKETS

const idOf = (bucket: number) => `_local/couchdb-sidecar:databases:${bucket}`

/**
 * What is known of each database, as far as events tell it that are written. Kept in `_local` documents of the database
 * that the events are in: it goes with them, has no revisions, and causes no change. It may be behind the events, which are
 * then written again, but for one thing: a database that it does not have was never told to be made.
 */
export class Ledger {
  readonly #database: Database
  readonly #buckets = new Map<number, Map<string, Reading>>()
  readonly #documents = new Map<number, LocalDoc>()
  readonly #changed = new Set<number>()
  /** Being written: what was noted before may not be stored yet. */
  #saving: number | undefined
  /** That was written last. */
  #newest: LocalDoc | undefined
  /** CouchDB keeps the `_local` document that comes last, which should not be the older one. */
  readonly #inTurn = createMutex()

  constructor(database: Database) {
    this.#database = database
  }

  /** Whether this bucket has been read. */
  has(bucket: number): boolean {
    return this.#buckets.has(bucket)
  }

  /** Reads what others have left in these buckets, and forgets all others. Throws `CouchError`. */
  async own(buckets: ReadonlySet<number>, signal: AbortSignal): Promise<void> {
    for (const bucket of this.#buckets.keys()) if (!buckets.has(bucket)) this.#buckets.delete(bucket)
    const missing = [...buckets].filter((bucket) => !this.has(bucket))
    const stored = await readLocalDocs(this.#database, missing.map(idOf), signal)
    for (const bucket of missing) {
      if (this.has(bucket)) continue // another call was faster, and changes may be noted since
      this.#buckets.set(bucket, readingsIn(stored.get(idOf(bucket))))
    }
  }

  /** The database has lost it all. */
  forget(): void {
    this.#buckets.clear()
    this.#changed.clear()
    this.#documents.clear()
    this.#newest = undefined
  }

  /** Whether it is older than what was written here last: an older copy of the database was put back. Throws `CouchError`. */
  async isPutBack(signal: AbortSignal): Promise<boolean> {
    return (await this.#newest?.isPutBack(signal)) ?? false
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

  /** It was found as it is known. Of files that were not asked before it is noted how far they are. */
  confirm(name: string, found: Reading): void {
    const known = this.get(name)
    if (!known || known.seq === found.seq) return
    this.set(name, { ...known, seq: found.seq, files: { ...found.files, ...known.files } })
  }

  /**
   * Notes this, and has it written down when it resolves. Throws `CouchError`, also where a bucket was forgotten, or is another
   * worker's by now: then nothing is noted, and what was to be written after it must not be.
   */
  async note(known: ReadonlyMap<string, Reading>, signal: AbortSignal): Promise<void> {
    const buckets = [...known.keys()].map(bucketOf)
    if (!buckets.every((bucket) => this.has(bucket))) throw forgotten(this.#database.name)
    for (const [name, reading] of known) this.set(name, reading)
    if (buckets.some((bucket) => this.#changed.has(bucket) || bucket === this.#saving)) await this.save(signal)
  }

  /** Writes down what has changed. Throws `CouchError`. */
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
  new CouchError('server', { request: `GET /${database}`, reason: 'what events were written has to be read again' })

/** As they are kept. */
type Fields = readonly [life: string, changes: number, files?: Files]

const fieldsOf = (known: Known): Fields | undefined => known && [known.life, known.changes, known.files ?? {}]

function readingsIn(doc: Doc | undefined): Map<string, Reading> {
  const databases = (doc?.databases ?? {}) as Readonly<Record<string, Fields>>
  return new Map(Object.entries(databases).map(([name, [life, changes, files]]) => [name, { life, changes, files }]))
}
