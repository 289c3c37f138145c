import { createHash } from 'node:crypto'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The hash of the writer's secret that a document carries. */
export const hashOfSecret = (secret: string): string => sha256(secret)

/**
 * Id of a document in the control database. It follows from the writer's secret and from the writer's own id. So
 * clients with the same id have different documents. Without the secret a client cannot know whether a document exists.
 */
export const inboxIdOf = (secretHash: string, id: string): string =>
  `inbox-${sha256(`${secretHash}\n${id}`).slice(0, 32)}`

/** Hash for a revision that the writer did not name: equal for equal content, so that a repetition is recognised. */
export const contentHash = (content: unknown): string => sha256(JSON.stringify(content)).slice(0, 32)
