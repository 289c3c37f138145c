/**
 * The `credentials` of a device: a password hash that the device computes, or the request for a generated password.
 * Never the password. The hash has the fields of CouchDB's `_users`; without `pbkdf2_prf` it is SHA-1, as in CouchDB.
 */
import { isObject } from './document.ts'

const GENERATE = '{"generate":true}'
const FIELDS = ['password_scheme', 'pbkdf2_prf', 'salt', 'derived_key', 'iterations']

/** Length of `derived_key` in hexadecimal digits: CouchDB makes the key as long as the digest. */
const KEY_DIGITS: Readonly<Record<string, number>> = { sha: 40, sha224: 56, sha256: 64, sha384: 96, sha512: 128 }

/**
 * CouchDB accepts 1 or more. Below 1,000, a leaked hash reveals the password. The server computes all iterations at
 * each login, even a failed one. So the maximum is what CouchDB itself uses by default.
 */
const ITERATIONS = { min: 1000, max: 600_000 }

/** Faults of a `credentials` field; none if it is absent. */
export function credentialFaults(credentials: unknown, { mayGenerate }: { mayGenerate: boolean }): string[] {
  if (credentials === undefined) return []
  if (mayGenerate && isObject(credentials) && requestsGeneration(credentials)) return []
  return hashFaults(isObject(credentials) ? credentials : {}).map(
    (fault) => `credentials: expected ${mayGenerate ? `${GENERATE} or ` : ''}${fault}`,
  )
}

const requestsGeneration = (credentials: Readonly<Record<string, unknown>>): boolean =>
  credentials.generate === true && Object.keys(credentials).length === 1

/** Faults do not show values: a client may have sent a password in the wrong field. */
function hashFaults(hash: Readonly<Record<string, unknown>>): string[] {
  const { password_scheme: scheme, salt, derived_key: key, iterations } = hash
  const prf = hash.pbkdf2_prf === undefined ? 'sha' : hash.pbkdf2_prf
  const digits = typeof prf === 'string' && Object.keys(KEY_DIGITS).indexOf(prf) >= 0 ? KEY_DIGITS[prf] : undefined
  const faults: string[] = []
  if (scheme !== 'pbkdf2') faults.push('password_scheme "pbkdf2"')
  if (digits === undefined) faults.push(`pbkdf2_prf to be absent or one of ${Object.keys(KEY_DIGITS).join(', ')}`)
  else if (typeof key !== 'string' || key.length !== digits || !/^[0-9a-f]+$/.test(key)) {
    faults.push(`derived_key of ${digits} lowercase hexadecimal digits`)
  }
  if (typeof salt !== 'string' || salt.length < 1 || salt.length > 128) faults.push('salt of 1 to 128 characters')
  if (!isWhole(iterations, ITERATIONS)) {
    faults.push(`iterations to be a whole number from ${ITERATIONS.min} to ${ITERATIONS.max}`)
  }
  if (Object.keys(hash).some((field) => FIELDS.indexOf(field) < 0)) faults.push(`no fields but ${FIELDS.join(', ')}`)
  return faults
}

const isWhole = (value: unknown, { min, max }: { min: number; max: number }): boolean =>
  typeof value === 'number' && Math.floor(value) === value && value >= min && value <= max
