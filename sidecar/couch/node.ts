import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import { isCouchError } from './errors.ts'
import { segment } from './path.ts'
import type { Schema } from './schemas.ts'

/**
 * Milliseconds. A node answers soon or never: what reaches one that is starting again is lost, and the node that has passed
 * it on waits for ever (five minutes seen; the next request is answered).
 */
const ANSWER_MS = 5000
const TRIES = 2

/** Asks one node of a cluster by way of another. Throws `CouchError`. @param path after the node, already encoded */
export async function askNode<T>(
  couch: Couch,
  node: string,
  path: string,
  schema: Schema<T>,
  options?: CallOptions,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await couch.request({ path: `_node/${segment(node)}/${path}`, timeoutMs: ANSWER_MS, ...options }, schema)
    } catch (thrown) {
      if (!isCouchError(thrown, 'timeout') || tries === TRIES) throw thrown
    }
  }
}
