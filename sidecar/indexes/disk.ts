import { stat, statfs } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'
import { isCouchError } from '../couch/couch-errors.ts'

export interface Disk {
  readonly freeBytes: number
  /** Without the space reserved for the system's administrator. */
  readonly totalBytes: number
}

/**
 * Reads the disk of the server's view indexes. Undefined if unknown: the server is on another machine or in a
 * container, or denies access to its configuration or its files. On a cluster, it is the disk of the node that
 * answers. Throws `CouchError` if no answer comes.
 */
export async function freeDisk(couch: Couch, options?: CallOptions): Promise<Disk | undefined> {
  if (!isLoopback(new URL(couch.url).hostname)) return undefined
  const { database_dir: databases, view_index_dir: indexes } = await readFolders(couch, options)
  if (databases === undefined || indexes === undefined || !isAbsolute(indexes)) return undefined
  try {
    await stat(join(databases, DATABASE_OF_DATABASES)) // fails if the path is a folder of another machine
    const { bavail, bfree, blocks, bsize } = await statfs(indexes)
    return { freeBytes: bavail * bsize, totalBytes: (blocks - bfree + bavail) * bsize } // like `df`: no reserved space
  } catch {
    return undefined
  }
}

/** CouchDB creates this file at its first start. */
const DATABASE_OF_DATABASES = '_dbs.couch'

const isLoopback = (host: string) => host === 'localhost' || host === '[::1]' || host.startsWith('127.')

const folders = z.object({ database_dir: z.string().optional(), view_index_dir: z.string().optional() })

async function readFolders(couch: Couch, options?: CallOptions): Promise<z.infer<typeof folders>> {
  try {
    return await couch.request({ path: '_node/_local/_config/couchdb', ...options }, folders)
  } catch (thrown) {
    if (isCouchError(thrown) && thrown.status !== undefined) return {} // no permission, or not CouchDB
    throw thrown
  }
}
