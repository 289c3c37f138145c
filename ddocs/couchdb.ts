/**
 * What CouchDB gives to the functions of a design document, as types (https://docs.couchdb.org/en/stable/ddocs/). Everything
 * else that a browser or Node has is missing there, so it is not declared. For a folder of your own, its `tsconfig.json`:
 *
 *     { "compilerOptions": { "lib": ["ES2017"], "types": ["couchdb-sidecar/ddocs"], "strict": true, "noEmit": true } }
 *
 * and in a function: `import type { Doc, ValidateDocUpdate } from 'couchdb-sidecar/ddocs'`.
 */

/** A document as functions get it, frozen. Of its own fields nothing is known before it is looked at. */
export interface Doc {
  readonly _id: string
  /** Missing from a new one in `validate_doc_update`. */
  readonly _rev?: string
  readonly _deleted?: true
  /** By name. The content is not there. */
  readonly _attachments?: Readonly<Record<string, AttachmentStub>>
  /** In `validate_doc_update` and filters: the latest revision first, without its number. */
  readonly _revisions?: { readonly start: number; readonly ids: readonly string[] }
  /** In maps, where the document has branches. */
  readonly _conflicts?: readonly string[]
  readonly [field: string]: unknown
}

export interface AttachmentStub {
  readonly content_type: string
  readonly digest?: string
  /** Bytes. */
  readonly length: number
  readonly revpos: number
  readonly stub?: true
}

/** Who asks or writes. */
export interface UserContext {
  /** Of the database. */
  readonly db: string
  /** Null without a login. */
  readonly name: string | null
  /** `_admin` among them for a server admin. */
  readonly roles: readonly string[]
}

/** The document `_security`. What it lacks is missing here, too. */
export interface SecurityObject {
  readonly admins?: { readonly names?: readonly string[]; readonly roles?: readonly string[] }
  readonly members?: { readonly names?: readonly string[]; readonly roles?: readonly string[] }
  readonly [field: string]: unknown
}

/** The request that asks for `_changes` by a filter, or for a show, list or update. */
export interface Request {
  readonly method: string
  /** Its JSON, or its text; `'undefined'` if it has none. */
  readonly body: unknown
  readonly cookie: Readonly<Record<string, string>>
  readonly form: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** Of the document, for a show or an update. */
  readonly id: string | null
  /** Of the database, or of the shard that is read. */
  readonly info: Readonly<Record<string, unknown>>
  readonly path: readonly string[]
  readonly peer: string
  /** The parameters of its address. */
  readonly query: Readonly<Record<string, string>>
  readonly raw_path: string
  readonly requested_path: readonly string[]
  readonly secObj: SecurityObject
  readonly userCtx: UserContext
  readonly uuid: string
}

/** `views/<name>/map`. */
export type MapFunction = (doc: Doc) => void

/**
 * `views/<name>/reduce`. Of rows: `keys` are pairs of key and id, and `values` what was emitted. Of its own results (`rereduce`):
 * `keys` is null.
 */
export type ReduceFunction<V = unknown, R = V> = (
  keys: readonly (readonly [key: unknown, id: string])[] | null,
  values: readonly (V | R)[],
  rereduce: boolean,
) => R

/** `filters/<name>`. */
export type FilterFunction = (doc: Doc, req: Request) => boolean

/**
 * `validate_doc_update`. It refuses a write by `throw { forbidden: 'why' }` (403), or `throw { unauthorized: 'why' }` (401).
 * `this` is the design document.
 */
export type ValidateDocUpdate = (newDoc: Doc, oldDoc: Doc | null, userCtx: UserContext, secObj: SecurityObject) => void

/** `indexes/<name>/index` (Clouseau), `nouveau/<name>/index`. */
export type IndexFunction = (doc: Doc) => void

/** `updates/<name>`: the document to be written, or null, and the answer. */
export type UpdateFunction = (doc: Doc | null, req: Request) => readonly [Doc | null, string | object]

declare global {
  /** Adds a row to the view; key and value are any JSON. Only in map functions. */
  function emit(key?: unknown, value?: unknown): void

  /**
   * Adds a field to the search index: `index(name, value, options)` in functions of `indexes`,
   * `index(type, name, value, options)` in those of `nouveau`.
   */
  function index(...args: unknown[]): void

  /** Writes a line into CouchDB's log. */
  function log(message: unknown): void

  function sum(values: readonly number[]): number
  function isArray(value: unknown): value is unknown[]
  function toJSON(value: unknown): string

  /** The next row of a list function. */
  function getRow(): unknown
  /** Begins the answer of a list function. */
  function start(response: object): void
  /** Goes on with it. */
  function send(chunk: string): void
  /** What a show or list function answers to those who ask for this kind. */
  function provides(type: string, respond: () => unknown): void
  function registerType(type: string, ...mimes: string[]): void
}
