import type { Couch } from './client.ts'
import type { CallOptions } from './database.ts'
import { segment } from './path.ts'
import type { Schema } from './schemas.ts'

/** Milliseconds, for each of two tries: if a forwarded request is lost, the node waits forever (seen: five minutes). */
const [BEGINS_MS, ANSWER_MS] = [5000, 10_000]

/** Sends a request to a cluster's node through another. Throws `CouchError`. @param path after the node, encoded */
export const requestNode = <T>(couch: Couch, node: string, path: string, schema: Schema<T>, options?: CallOptions) =>
  couch.request(
    { path: `_node/${segment(node)}/${path}`, beginsWithinMs: BEGINS_MS, timeoutMs: ANSWER_MS, ...options },
    schema,
  )
