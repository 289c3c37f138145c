/** Credentials that a device generates. Only the device knows the password and the secret. */
import { ClientError } from '../errors.ts'

/** How the server hashes passwords. */
export interface Hashing {
  readonly prf: 'sha' | 'sha256'
  readonly iterations: number
}

/** CouchDB's default since 3.4: CouchDB keeps such a hash as it is. */
export const DEFAULT_HASHING: Hashing = { prf: 'sha256', iterations: 600_000 }

/** A password hash in the form of `_users`. */
export interface HashedPassword {
  readonly password_scheme: 'pbkdf2'
  readonly pbkdf2_prf?: 'sha256'
  readonly salt: string
  readonly derived_key: string
  readonly iterations: number
}

const DIGESTS = { sha: { name: 'SHA-1', bits: 160 }, sha256: { name: 'SHA-256', bits: 256 } } as const

/** @throws ClientError `insecure_context` */
export function needsCrypto(): void {
  // In the types, WebCrypto always exists. Browsers omit it on pages without a secure context.
  if ((globalThis.crypto as Partial<Crypto> | undefined)?.subtle) return
  const where = (globalThis as { readonly location?: Location }).location?.origin ?? 'here'
  throw new ClientError(
    'insecure_context',
    `expected WebCrypto (crypto.subtle), got none at ${where}; serve the app by https, or on localhost`,
  )
}

/** Random hexadecimal digits. Use 128 bits or more. */
export const randomHex = (bytes = 16): string => hexOf(crypto.getRandomValues(new Uint8Array(bytes)))

/** Six random digits, uniformly distributed, for people to read and type. */
export function randomCode(): string {
  const fair = 0xffffffff - (0xffffffff % 1_000_000)
  for (;;) {
    const [number = 0] = crypto.getRandomValues(new Uint32Array(1))
    if (number < fair) return String(number % 1_000_000).padStart(6, '0')
  }
}

export const sha256 = async (text: string): Promise<string> =>
  hexOf(new Uint8Array(await crypto.subtle.digest('SHA-256', bytesOf(text))))

/** The hash that CouchDB stores. The salt is used as text, not decoded. */
export async function hashPassword(password: string, { prf, iterations }: Hashing): Promise<HashedPassword> {
  const salt = randomHex()
  const { name, bits } = DIGESTS[prf]
  const key = await crypto.subtle.importKey('raw', bytesOf(password), 'PBKDF2', false, ['deriveBits'])
  const how = { name: 'PBKDF2', hash: name, salt: bytesOf(salt), iterations }
  const derived = new Uint8Array(await crypto.subtle.deriveBits(how, key, bits))
  const prfField = prf === 'sha' ? {} : { pbkdf2_prf: prf }
  return { password_scheme: 'pbkdf2', ...prfField, salt, derived_key: hexOf(derived), iterations }
}

const bytesOf = (text: string) => new TextEncoder().encode(text)

const hexOf = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
