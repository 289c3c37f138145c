import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'
import { CouchError, isCouchError } from '../couch/errors.ts'
import type { Server } from './server.ts'
import { askNode } from '../couch/node.ts'

/**
 * Whether the server builds indexes itself (`ken`): `on` if any node does, `absent` where it cannot, `unknown` where it
 * does not tell.
 */
export type ServersKen = 'on' | 'off' | 'absent' | 'unknown'

const ken = z.object({ batch_channels: z.string().optional(), incremental_channels: z.string().optional() })
type Section = z.infer<typeof ken>

/** There is no other way to switch it off than to give it no channels. Throws `CouchError` where the server does not answer. */
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

/** Undefined where there is no such thing. */
async function sectionOf(couch: Couch, node: string, options?: CallOptions): Promise<Section | undefined> {
  try {
    return await askNode(couch, node, '_config/ken', ken, options)
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return undefined
    throw thrown
  }
}

const isOff = ({ batch_channels, incremental_channels }: Section) =>
  batch_channels === '0' && incremental_channels === '0'
