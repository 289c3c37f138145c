/** Name and password of an `Authorization` header. Latin-1 text holds their bytes, because CouchDB compares bytes. */
export interface Login {
  readonly name: string
  readonly password: string
}

/** Whether `loginFrom` or CouchDB might read a login from this header. */
export const isBasic = (authorization: string | undefined): boolean => /^\s*basic\b/i.test(authorization ?? '')

/** The login in a header; `undefined` if the header has none. */
export function loginFrom(authorization: string | undefined): Login | undefined {
  const [, base64 = ''] = /^basic +([a-z0-9+/]+={0,2})$/i.exec(authorization?.trim() ?? '') ?? []
  const [, name, password] = /^([^:]*):([^]*)$/.exec(Buffer.from(base64, 'base64').toString('latin1')) ?? []
  return name === undefined || password === undefined ? undefined : { name, password }
}

/** Encodes the login again: CouchDB parses headers more loosely than `loginFrom` and must not read another name. */
export const headerOf = ({ name, password }: Login): string =>
  `Basic ${Buffer.from(`${name}:${password}`, 'latin1').toString('base64')}`

/** The login in the address of a server, if any. */
export function loginIn({ username, password }: URL): Login | undefined {
  return username ? { name: bytesOf(username), password: bytesOf(password) } : undefined
}

const bytesOf = (encoded: string): string => Buffer.from(decodeURIComponent(encoded)).toString('latin1')

/** The name as Unicode text. */
export const nameIn = ({ name }: Login): string => Buffer.from(name, 'latin1').toString()
