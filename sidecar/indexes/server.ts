import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { names, server } from '../couch/schemas.ts'
import { requestNode } from '../couch/node.ts'

/** Properties of a server that matter for its indexes. */
export interface Server {
  /** Undefined if the server is not CouchDB (PouchDB). */
  readonly features: readonly string[] | undefined
  /** Major version; NaN if the server does not report it. */
  readonly version: number
  /** Node names for `_node`; undefined if the sidecar may not read them. */
  readonly nodes: readonly string[] | undefined
}

/** Throws `CouchError` if the server does not answer, or refuses the sidecar. */
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

/**
 * Whether the server builds indexes itself (`ken`): `on` if any node does, `absent` if it cannot, `unknown` if it does
 * not report it.
 */
export type ServersKen = 'on' | 'off' | 'absent' | 'unknown'

const ken = z.object({ batch_channels: z.string().optional(), incremental_channels: z.string().optional() })
type Section = z.infer<typeof ken>

/** Reads ken's channels: only 0 channels switch ken off. Throws `CouchError` if the server does not answer. */
export async function findServersKen(
  couch: Couch,
  { version, nodes }: Server,
  options?: CallOptions,
): Promise<ServersKen> {
  if (version < 3) return 'absent'
  if (!nodes) return 'unknown'
  try {
    const sections = await Promise.all(nodes.map((node) => sectionOf(couch, node, options)))
    if (sections.some((section) => section === undefined)) return 'absent'
    return sections.every((section) => isOff(section!)) ? 'off' : 'on'
  } catch (thrown) {
    if (!(thrown instanceof CouchError) || thrown.retry === 'soon') throw thrown
    return 'unknown'
  }
}

/** Undefined if the node has no ken. */
async function sectionOf(couch: Couch, node: string, options?: CallOptions): Promise<Section | undefined> {
  try {
    return await requestNode(couch, node, '_config/ken', ken, options)
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return undefined
    throw thrown
  }
}

const isOff = ({ batch_channels, incremental_channels }: Section) =>
  batch_channels === '0' && incremental_channels === '0'
