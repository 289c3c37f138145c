import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'
import { CouchError } from '../couch/errors.ts'
import { names, server } from '../couch/schemas.ts'

/** What a server tells of itself, as far as it matters for its indexes. */
export interface Server {
  /** Undefined of one that is no CouchDB (PouchDB). */
  readonly features: readonly string[] | undefined
  /** The first number of its version; NaN where it does not tell. */
  readonly version: number
  /** By which `_node` knows them; undefined where that is not for us to know. */
  readonly nodes: readonly string[] | undefined
}

/** Throws `CouchError` where the server does not answer, or refuses the sidecar. */
export async function findServer(couch: Couch, options?: CallOptions): Promise<Server> {
  const { features, version = '' } = await couch.request({ ...options }, server)
  return { features, version: parseInt(version), nodes: await findNodes(couch, options) }
}

const membership = z.object({ cluster_nodes: names.optional() })

async function findNodes(couch: Couch, options?: CallOptions): Promise<readonly string[] | undefined> {
  try {
    const { cluster_nodes = [] } = await couch.request({ path: '_membership', ...options }, membership)
    return cluster_nodes.length > 1 ? cluster_nodes : ['_local']
  } catch (thrown) {
    if (!(thrown instanceof CouchError) || thrown.retry === 'soon' || thrown.code === 'unauthorized') throw thrown
    return undefined
  }
}
