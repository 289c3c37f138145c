import { createHash } from 'node:crypto'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** What a document carries of its writer's secret. */
export const hashOfSecret = (secret: string): string => sha256(secret)

/**
 * The id under which a document stands in the control database. It follows from the writer's secret and from the id
 * that the writer knows: no client meets another's document, also under the same id, and without the secret a client cannot
 * tell whether there is one.
 */
export const inboxIdOf = (secretHash: string, id: string): string =>
  `inbox-${sha256(`${secretHash}\n${id}`).slice(0, 32)}`

/** What a revision is called that the writer left to us: the same for the same content, so that a repetition is one. */
export const contentHash = (content: unknown): string => sha256(JSON.stringify(content)).slice(0, 32)
