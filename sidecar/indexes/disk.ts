import { stat, statfs } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { CallOptions } from '../couch/database.ts'
import { isCouchError } from '../couch/couch-errors.ts'

export interface Disk {
  readonly freeBytes: number
  /** That all but the system's administrator can fill. */
  readonly totalBytes: number
}

/**
 * The disk on which the server keeps the indexes of views. Undefined where that cannot be known: the server is on
 * another machine or in a container, refuses to say it, or does not let us read its files. Of a cluster, the disk
 * of the node that answers. Throws `CouchError` where there is no answer at all.
 */
export async function freeDisk(couch: Couch, options?: CallOptions): Promise<Disk | undefined> {
  if (!isLoopback(new URL(couch.url).hostname)) return undefined
  const { database_dir: databases, view_index_dir: indexes } = await readFolders(couch, options)
  if (databases === undefined || indexes === undefined || !isAbsolute(indexes)) return undefined
  try {
    await stat(join(databases, DATABASE_OF_DATABASES)) // else it is another machine's folder that has the same name here
    const { bavail, bfree, blocks, bsize } = await statfs(indexes)
    return { freeBytes: bavail * bsize, totalBytes: (blocks - bfree + bavail) * bsize } // as `df`: without what is the system's
  } catch {
    return undefined
  }
}

/** CouchDB has it from its first start on. */
const DATABASE_OF_DATABASES = '_dbs.couch'

const isLoopback = (host: string) => host === 'localhost' || host === '[::1]' || host.startsWith('127.')

const folders = z.object({ database_dir: z.string().optional(), view_index_dir: z.string().optional() })

async function readFolders(couch: Couch, options?: CallOptions): Promise<z.infer<typeof folders>> {
  try {
    return await couch.request({ path: '_node/_local/_config/couchdb', ...options }, folders)
  } catch (thrown) {
    if (isCouchError(thrown) && thrown.status !== undefined) return {} // not for us, or no CouchDB
    throw thrown
  }
}
