/**
 * The parts of PouchDB that the client uses. The app provides PouchDB, version 8 or later, in any composition. The
 * types are declared here because `@types/pouchdb` declares global names (`Buffer`) for the whole program.
 */
export interface Pouch {
  new (name: string, options?: object): Db
  fetch(url: string, options?: RequestInit): Promise<Response>
}

/** PouchDB's constructor as the app passes it, with the app's type of databases. */
export type PouchOf<D> = new (name: string, options?: object) => D

export interface Db {
  info(): Promise<{ update_seq: number | string }>
  get(id: string): Promise<StoredDoc>
  put(doc: object & { _id: string }): Promise<unknown>
  allDocs(options?: { include_docs?: boolean; keys?: string[] }): Promise<{ rows: Row[] }>
  changes(options?: { since?: number | string; live?: boolean; include_docs?: boolean }): Changes
  readonly replicate: {
    to(target: Db, options?: object): Replication
    from(source: Db, options?: object): Replication
  }
  close(): Promise<unknown>
  destroy(): Promise<unknown>
}

export interface StoredDoc {
  readonly _id: string
  readonly _rev: string
  readonly [field: string]: unknown
}

interface Row {
  readonly id: string
  readonly doc?: StoredDoc | null
}

interface Changes {
  on(event: 'change', listener: (change: Change) => void): unknown
  cancel(): void
}

/** A row of `_changes`. */
export interface Change {
  readonly id: string
  readonly changes: readonly { readonly rev: string }[]
  readonly deleted?: boolean
  readonly doc?: object
}

export interface Replication extends PromiseLike<unknown> {
  on(event: 'change', listener: (change: ReplicationChange) => void): unknown
  on(event: 'active' | 'paused', listener: () => void): unknown
  on(event: 'denied' | 'error', listener: (thrown: object) => void): unknown
  cancel(): void
}

export interface ReplicationChange {
  /** Documents written since the replication began. */
  readonly docs_written: number
  readonly docs: readonly { readonly _id: string; readonly _rev: string }[]
  /** Pending changes of the source, if it reports them. */
  readonly pending?: number
}

/** HTTP status of an error that PouchDB throws, for local and remote databases. */
export function statusOf(thrown: unknown): number | undefined {
  const { status } = (thrown ?? {}) as { readonly status?: unknown }
  return typeof status === 'number' ? status : undefined
}
