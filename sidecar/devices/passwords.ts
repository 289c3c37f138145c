import { pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { HashedPassword } from './device-documents.ts'

const derive = promisify(pbkdf2)

/** The server's hash parameters. With others it rewrites a user at first login (CouchDB: `upgrade_hash_on_auth`). */
export interface Hashing {
  readonly prf: 'sha' | 'sha256'
  readonly iterations: number
}

/** CouchDB's own defaults since 3.4. */
const couchHashing: Hashing = { prf: 'sha256', iterations: 600_000 }

/** pouchdb-server's parameters: it supports no other function, and its loop over the iterations is slow. */
const embeddedHashing: Hashing = { prf: 'sha', iterations: 1000 }

export const hashingOf = (embedded: boolean): Hashing => (embedded ? embeddedHashing : couchHashing)

const digests = { sha: { name: 'sha1', bytes: 20 }, sha256: { name: 'sha256', bytes: 32 } } as const

/** A password in clear text, with its stored hash. */
export interface MadePassword {
  readonly password: string
  readonly hashed: HashedPassword
}

/** Makes a password to show once: 128 random bits. */
export async function makePassword(hashing: Hashing): Promise<MadePassword> {
  const password = randomBytes(16).toString('base64url')
  return { password, hashed: await hashPassword(password, hashing) }
}

/** The hash that CouchDB stores of a password. The salt is used as text, not decoded from hex. */
export async function hashPassword(password: string, { prf, iterations }: Hashing): Promise<HashedPassword> {
  const salt = randomBytes(16).toString('hex')
  const { name, bytes } = digests[prf]
  const derived = await derive(password, salt, iterations, bytes, name)
  return {
    password_scheme: 'pbkdf2',
    ...(prf === 'sha' ? {} : { pbkdf2_prf: prf }),
    derived_key: derived.toString('hex'),
    salt,
    iterations,
  }
}
