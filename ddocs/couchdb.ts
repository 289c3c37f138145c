/**
 * Types of what CouchDB passes to the functions of a design document (https://docs.couchdb.org/en/stable/ddocs/).
 * CouchDB has none of the APIs of browsers and Node, so they are not declared. `tsconfig.json` for a folder of your
 * own:
 *
 *     { "compilerOptions": { "lib": ["ES2017"], "types": ["couchdb-sidecar/ddocs"], "strict": true, "noEmit": true } }
 *
 * In a function: `import type { Doc, ValidateDocUpdate } from 'couchdb-sidecar/ddocs'`.
 */

/**
 * A document as CouchDB passes it to functions, frozen. The types of its own fields are unknown: check them before use.
 */
export interface Doc {
  readonly _id: string
  /** Missing in `validate_doc_update` if the document is new. */
  readonly _rev?: string
  readonly _deleted?: true
  /** Stubs by attachment name, without the content. */
  readonly _attachments?: Readonly<Record<string, AttachmentStub>>
  /** Only in `validate_doc_update` and filters: revision ids without their numbers, latest first. */
  readonly _revisions?: { readonly start: number; readonly ids: readonly string[] }
  /** Only in maps: conflicting revisions, if the document has any. */
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

/** The user that sends the request. */
export interface UserContext {
  /** Name of the database. */
  readonly db: string
  /** Null if the user is anonymous. */
  readonly name: string | null
  /** Contains `_admin` if the user is a server admin. */
  readonly roles: readonly string[]
}

/** The `_security` object of the database. Fields that it lacks are missing here, too. */
export interface SecurityObject {
  readonly admins?: { readonly names?: readonly string[]; readonly roles?: readonly string[] }
  readonly members?: { readonly names?: readonly string[]; readonly roles?: readonly string[] }
  readonly [field: string]: unknown
}

/** The HTTP request: for `_changes` with a filter, or for a show, list or update function. */
export interface Request {
  readonly method: string
  /** Parsed JSON, or text; `'undefined'` if the request has no body. */
  readonly body: unknown
  readonly cookie: Readonly<Record<string, string>>
  readonly form: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** Id of the document, for a show or update function. */
  readonly id: string | null
  /** Information about the database, or about the shard that is read. */
  readonly info: Readonly<Record<string, unknown>>
  readonly path: readonly string[]
  readonly peer: string
  /** Query parameters. */
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
 * `views/<name>/reduce`. For rows, `keys` holds pairs of key and id, and `values` the emitted values. For results of
 * the function itself (`rereduce`), `keys` is null.
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

/** `updates/<name>`. Returns the document to write, or null, and the response. */
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
  /** Starts the response of a list function. */
  function start(response: object): void
  /** Sends the next chunk of that response. */
  function send(chunk: string): void
  /** Registers the response of a show or list function for requests of this content type. */
  function provides(type: string, respond: () => unknown): void
  function registerType(type: string, ...mimes: string[]): void
}
