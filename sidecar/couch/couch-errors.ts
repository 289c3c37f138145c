import { SidecarError } from '../core/errors.ts'

/** Failures between the sidecar and CouchDB. */
export type CouchErrorCode =
  | 'unreachable' // no connection, a broken one, or a host name that does not resolve
  | 'timeout' // no answer in time
  | 'garbled' // not an answer of CouchDB: a proxy's page, half a body, a body above the size limit
  | 'overloaded' // 429, 503, `all_dbs_active`
  | 'server' // any other 5xx, and any other 412: a cluster with unreachable nodes sends it
  | 'unauthorized' // 401
  | 'forbidden' // 403
  | 'not_found' // 404
  | 'conflict' // 409
  | 'exists' // 412 `file_exists`
  | 'too_large' // 413
  | 'bad_request' // any other 4xx

/**
 * When to retry. `soon`: the error passes by itself; back off and retry. `slowly`: a person must fix it (a password, a
 * right); report it and retry now and then. `never`: the same request gets the same answer.
 */
export type Retry = 'soon' | 'slowly' | 'never'

/** The only table of retries. */
export const retryTable: Readonly<Record<CouchErrorCode, Retry>> = {
  unreachable: 'soon',
  timeout: 'soon',
  garbled: 'soon',
  overloaded: 'soon',
  server: 'soon',
  unauthorized: 'slowly',
  forbidden: 'slowly',
  not_found: 'never',
  conflict: 'never',
  exists: 'never',
  too_large: 'never',
  bad_request: 'never',
}

/** Texts for operators and users, to follow "…: ". */
export const troubleInWords: Readonly<Record<CouchErrorCode, string>> = {
  unreachable: 'CouchDB cannot be reached',
  timeout: 'CouchDB does not answer in time',
  garbled: 'the server at this address is not CouchDB, or its answer was cut off',
  overloaded: 'CouchDB is overloaded',
  server: 'CouchDB reports an internal error, see its log',
  unauthorized: 'CouchDB refuses the name or the password of the sidecar',
  forbidden: 'CouchDB does not let the sidecar read it',
  not_found: 'it does not exist',
  conflict: 'another client changed it first',
  exists: 'it exists already',
  too_large: 'CouchDB rejects the request as too large',
  bad_request: 'CouchDB rejects the request as malformed',
}

export interface CouchErrorDetails {
  readonly request: string
  readonly status?: number
  readonly error?: string
  readonly reason?: string
  readonly rowOf?: string
}

const COUCH_ERROR = Symbol.for('couchdb-sidecar:CouchError')

/** A failed request to CouchDB: an error answer, or no answer. Holds no credentials. */
export class CouchError extends SidecarError {
  override readonly name = 'CouchError'
  declare readonly code: CouchErrorCode
  readonly request: string
  readonly status: number | undefined
  /** CouchDB's own `error` word, if it sent one. */
  readonly error: string | undefined
  /** CouchDB's own `reason`, or the text of the network error. */
  readonly reason: string
  /** In a bulk write: id of the only document that this error concerns. */
  readonly rowOf: string | undefined

  constructor(code: CouchErrorCode, details: CouchErrorDetails, options?: ErrorOptions) {
    const reason = details.reason ?? code
    super(
      code,
      `${details.request}${details.rowOf === undefined ? '' : ` (${details.rowOf})`}: ${details.status ? `${details.status} ` : ''}${reason}`,
      options,
    )
    this.request = details.request
    this.status = details.status
    this.error = details.error
    this.reason = reason
    this.rowOf = details.rowOf
  }

  get retry(): Retry {
    return retryTable[this.code]
  }

  get [COUCH_ERROR](): true {
    return true
  }

  /** A module of handlers may test for its own copy of this class, as with `Reject`. */
  static override [Symbol.hasInstance](thrown: unknown): boolean {
    return typeof thrown === 'object' && thrown !== null && COUCH_ERROR in thrown
  }
}

const byStatus: Readonly<Record<number, CouchErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  408: 'timeout',
  409: 'conflict',
  412: 'server',
  413: 'too_large',
  429: 'overloaded',
  503: 'overloaded',
}

/** The code for an HTTP status and CouchDB's `error` word. */
export function codeOf(status: number, error?: string): CouchErrorCode {
  if (error === 'all_dbs_active') return 'overloaded'
  if (error === 'file_exists') return 'exists'
  if (error === 'missing_stub') return 'bad_request' // 412: an attachment of the document is missing
  return byStatus[status] ?? (status >= 500 ? 'server' : 'bad_request')
}

/** Whether the whole server is unreachable or refuses the sidecar: every other database would give the same error. */
export const isServerAway = (code: CouchErrorCode): boolean => code === 'unreachable' || code === 'unauthorized'

export const isCouchError = (thrown: unknown, code?: CouchErrorCode): thrown is CouchError =>
  thrown instanceof CouchError && (code === undefined || thrown.code === code)

/** A sentence that says why a database cannot be read. */
export const unreadInWords = (name: string, { code }: CouchError): string =>
  `${name} cannot be read: ${troubleInWords[code]} (${code}).`

/** Whether the error concerns one database only: other databases may answer normally. */
export const isOfOneDatabase = (thrown: unknown): thrown is CouchError =>
  isCouchError(thrown) && !isServerAway(thrown.code)
