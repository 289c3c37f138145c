/** The PouchDB of an app: the copy that the embedded server installs, with a database in memory. */
import { createRequire } from 'node:module'
import { onTestFinished } from 'vitest'
import { uniqueName } from '../support/couchdb.ts'

export interface Replicated {
  readonly ok: boolean
  readonly docs_written: number
  readonly doc_write_failures: number
  readonly errors: readonly unknown[]
}

export interface Replication extends Promise<Replicated> {
  on(event: string, listener: (received: never) => void): Replication
  cancel(): void
}

export interface Pouch {
  put(doc: object): Promise<{ rev: string }>
  remove(id: string, rev: string): Promise<unknown>
  destroy(): Promise<void>
  readonly replicate: { to(url: string, options?: object): Replication }
}

type PouchDB = { plugin(plugin: unknown): PouchDB } & (new (name: string, options: object) => Pouch)

const load = createRequire(import.meta.url)
let PouchDB: PouchDB | undefined

/** A new, empty database; destroyed at the end of the test. */
export function createPouch(): Pouch {
  PouchDB ??= (load('pouchdb-core') as PouchDB)
    .plugin(load('pouchdb-adapter-memory'))
    .plugin(load('pouchdb-adapter-http'))
    .plugin(load('pouchdb-replication'))
  const pouch = new PouchDB(uniqueName('phone'), { adapter: 'memory' })
  onTestFinished(() => pouch.destroy())
  return pouch
}
