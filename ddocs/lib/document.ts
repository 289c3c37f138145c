/** A document as CouchDB passes it to `validate_doc_update` and maps: unchecked, so every field is unknown. */
export interface Doc {
  readonly _id?: unknown
  readonly [field: string]: unknown
}

/** The user that writes. `name` is null for anonymous requests. */
export interface UserCtx {
  readonly db: string
  readonly name: string | null
  readonly roles: readonly string[]
}

/** Server admins, and the sidecar, may do anything. */
export const isAdmin = (userCtx: UserCtx): boolean => userCtx.roles.indexOf('_admin') >= 0

/** `Object.hasOwn`, which ES2017 lacks. A client's `type` may be `constructor`. */
export const has = (object: object, key: string): boolean => Object.prototype.hasOwnProperty.call(object, key)

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Refuses the write with 403 and this reason. CouchDB requires exactly this object, not an `Error`. */
export function forbid(reason: string): never {
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  throw { forbidden: reason }
}

const SHOWN = 60

/** A value for a message. Long text is cut; arrays and objects are only named, because they may be deeply nested. */
export function quote(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (typeof value === 'string') return JSON.stringify(value.length > SHOWN ? `${value.slice(0, SHOWN)}…` : value)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return JSON.stringify(value)
}
