import { createHmac, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'

/** Signs a text with the credentials of the client. */
export type Sign = (text: string) => Promise<string>

const derive = promisify(pbkdf2)

/** PBKDF2 rounds, as many as CouchDB's: guessing the password from a signature is no faster than from its hash. */
const ROUNDS = 600_000

/**
 * Signs data that the sidecar stores where others may write. All workers log in with the same credentials, so each one
 * accepts the signatures of the others. New credentials make all older signatures invalid. The first call derives the
 * key, without blocking other work.
 */
export function createSign(credentials: string): Sign {
  let key: Promise<Buffer> | undefined
  return async (text) => {
    key ??= derive(credentials, 'couchdb-sidecar', ROUNDS, 32, 'sha256')
    return createHmac('sha256', await key)
      .update(text)
      .digest('base64url')
  }
}
