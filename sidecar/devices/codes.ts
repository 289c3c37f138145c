import { createHash, randomBytes } from 'node:crypto'

const CODE_BYTES = 20

/** A new secret for one mail: 160 random bits, in characters that need no escaping in a link. */
export const newCode = (): string => randomBytes(CODE_BYTES).toString('base64url')

/** The stored hash of a code. A random code of this length needs no slow hash. */
export const hashCode = (code: string): string => createHash('sha256').update(code).digest('base64url')
