import { createHmac, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'

/** Signs a text with these credentials. */
export type Sign = (text: string) => Promise<string>

const derive = promisify(pbkdf2)

/** As many as CouchDB takes for a password: who reads a signature guesses the password no faster than by its hash. */
const ROUNDS = 600_000

/**
 * For what the sidecar keeps where others may write. All workers log in with the same credentials, so each believes what
 * another one has signed; with others nothing is believed that was signed before. The key is made when it is asked for,
 * beside whatever else runs.
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
