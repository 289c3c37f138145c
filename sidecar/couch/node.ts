import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import { segment } from './path.ts'
import type { Schema } from './schemas.ts'

/** Milliseconds, each of two tries: the node that passes on what is lost waits for ever (five minutes seen). */
const [BEGINS_MS, ANSWER_MS] = [5000, 10_000]

/** Asks one node of a cluster by way of another. Throws `CouchError`. @param path after the node, already encoded */
export const askNode = <T>(couch: Couch, node: string, path: string, schema: Schema<T>, options?: CallOptions) =>
  couch.request(
    { path: `_node/${segment(node)}/${path}`, beginsWithinMs: BEGINS_MS, timeoutMs: ANSWER_MS, ...options },
    schema,
  )
