import { z } from 'zod'
import type { Couch } from '../../couch/client.ts'
import { freeDisk } from '../../indexes/disk.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { readViewIndex } from '../../indexes/view-index.ts'
import { DeployError } from '../deploy-errors.ts'
import { copyId } from './copy.ts'

/** Factor: an index takes more space during its build than after compaction. */
const MARGIN = 2

/**
 * Throws `DeployError` `no_space` if the disk is known to lack space for second indexes of these design documents. The
 * estimate is the size of the current index, or of the documents if that index was never built. Parts that an earlier
 * run has built are subtracted.
 */
export async function refuseWithoutRoom(
  couch: Couch,
  database: string,
  ddocs: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const disk = await freeDisk(couch, { signal })
  if (!disk) return
  let needed = 0
  for (const id of ddocs) {
    const { bytes, seq } = await readViewIndex(couch, database, id, { signal })
    const size = seq > 0 ? bytes : await documentBytes(couch, database, signal)
    needed += Math.max(0, size * MARGIN - (await stagedBytes(couch, database, id, signal)))
  }
  if (needed <= disk.freeBytes) return
  throw new DeployError('no_space', [
    `${database}: a second index of ${ddocs.join(', ')} may need ${inWords(needed)}, but ${inWords(disk.freeBytes)} are free on CouchDB's disk`,
    'nothing was changed: free some space, or try with --no-disk-check',
  ])
}

const sizesOf = z.object({ sizes: z.object({ active: z.number().optional() }).optional() })

async function documentBytes(couch: Couch, db: string, signal?: AbortSignal): Promise<number> {
  const { sizes } = await couch.request({ db, signal }, sizesOf)
  return sizes?.active ?? 0
}

async function stagedBytes(couch: Couch, db: string, id: string, signal?: AbortSignal): Promise<number> {
  try {
    return (await readViewIndex(couch, db, copyId('staged', id), { signal })).bytes
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return 0
    throw thrown
  }
}

const inWords = (bytes: number): string => {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return `${(bytes / 1000 ** power).toFixed(power > 0 ? 1 : 0)} ${units[power]}`
}
