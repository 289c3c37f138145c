import { SidecarError } from '../core/errors.ts'

/** What can go wrong between the sidecar and CouchDB. */
export type CouchErrorCode =
  | 'unreachable' // no connection, cut, or the name does not resolve
  | 'timeout' // no answer in the time given
  | 'garbled' // an answer that is not what CouchDB says: a proxy's page, half a body, more than we hold
  | 'overloaded' // 429, 503, `all_dbs_active`
  | 'server' // any other 5xx, and any other 412: a cluster whose nodes cannot be reached answers so
  | 'unauthorized' // 401
  | 'forbidden' // 403
  | 'not_found' // 404
  | 'conflict' // 409
  | 'exists' // 412 `file_exists`
  | 'too_large' // 413
  | 'bad_request' // any other 4xx

/**
 * When it is worth asking again. `soon`: by itself it will pass; back off and retry. `slowly`: a person has to mend
 * it (a password, a right); say so and look again now and then. `never`: the same request will get the same answer.
 */
export type Retry = 'soon' | 'slowly' | 'never'

/** The one table of what is retried. */
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

/** For people, after "…: ". */
export const troubleInWords: Readonly<Record<CouchErrorCode, string>> = {
  unreachable: 'CouchDB cannot be reached',
  timeout: 'CouchDB does not answer in time',
  garbled: 'what answers at its address is not CouchDB, or its answer was cut off',
  overloaded: 'CouchDB is overloaded',
  server: 'CouchDB has an error of its own, see its log',
  unauthorized: 'CouchDB refuses the name or the password of the sidecar',
  forbidden: 'CouchDB does not let the sidecar read it',
  not_found: 'it is not there',
  conflict: 'another writer was there first',
  exists: 'it exists already',
  too_large: 'CouchDB finds the request too large',
  bad_request: 'CouchDB does not understand the request',
}

export interface CouchErrorDetails {
  readonly request: string
  readonly status?: number
  readonly error?: string
  readonly reason?: string
  readonly rowOf?: string
}

const COUCH_ERROR = Symbol.for('couchdb-sidecar:CouchError')

/** An answer of CouchDB that is not the one hoped for, or no answer at all. Holds no credentials. */
export class CouchError extends SidecarError {
  override readonly name = 'CouchError'
  declare readonly code: CouchErrorCode
  readonly request: string
  readonly status: number | undefined
  /** CouchDB's own `error` word, where it gave one. */
  readonly error: string | undefined
  /** CouchDB's own `reason`, or what the network said. */
  readonly reason: string
  /** Of a write together with others: the document of which alone this was said. */
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

  /** As with `Reject`: a module of handlers may look for its own copy of this class. */
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
  if (error === 'missing_stub') return 'bad_request' // 412, of a document whose attachment is not there
  return byStatus[status] ?? (status >= 500 ? 'server' : 'bad_request')
}

/** Whether the whole server is away or refuses the sidecar, so that every other database would answer the same. */
export const isServerAway = (code: CouchErrorCode): boolean => code === 'unreachable' || code === 'unauthorized'

export const isCouchError = (thrown: unknown, code?: CouchErrorCode): thrown is CouchError =>
  thrown instanceof CouchError && (code === undefined || thrown.code === code)

/** That a database cannot be read, and why. */
export const unreadInWords = (name: string, { code }: CouchError): string =>
  `${name} cannot be read: ${troubleInWords[code]} (${code}).`

/** Whether it says nothing of other databases: they may answer well. */
export const isOfOneDatabase = (thrown: unknown): thrown is CouchError =>
  isCouchError(thrown) && !isServerAway(thrown.code)
