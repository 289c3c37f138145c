import type { Couch } from '../../couch/client.ts'
import type { Doc } from '../../couch/documents.ts'
import { isCouchError, type CouchError } from '../../couch/couch-errors.ts'
import { readIndexerTasks } from '../../indexes/indexer-tasks.ts'
import { withRetries } from '../../couch/with-retries.ts'
import { queryViewIndex, buildViewIndex, readViewIndex, type ViewIndex } from '../../indexes/view-index.ts'
import { DeployError } from '../deploy-errors.ts'
import { copyId, viewNames } from './copy.ts'
import type { Surroundings } from './surroundings.ts'

export interface Warming extends Surroundings {
  readonly couch: Couch
  readonly database: string
  /** The design document whose copy is staged. */
  readonly ddoc: Doc
}

const LOOK = { firstMs: 20, longestMs: 1000 }
/** A server may be unreachable or too busy to answer for this long: a build may take hours. */
const PATIENCE_MS = 300_000

/**
 * Builds the index of a staged copy (on a cluster, all shard copies) until almost no changes are missing. While clients
 * write, some changes are always missing. Returns the index's signature.
 *
 * No request waits at the index during the build, because it would take capacity from queries. This function starts
 * the build and polls the index. Throws `DeployError` `index_failed` with the error of the build.
 */
export async function warm(warming: Warming): Promise<string> {
  const { couch, database, ddoc, signal } = warming
  const id = copyId('staged', ddoc._id)
  const view = viewNames(ddoc)[0]!
  for (;;) {
    const before = await look(warming)
    if (!before.isRunning && isNearly(before) && (await isCurrent(warming, view))) break
    const build = () => buildViewIndex(couch, database, id, view, { signal })
    if (!before.isRunning) await withPatience(warming, build)
    const after = await untilStill(warming)
    if (after.pending >= before.pending) await isCurrent(warming, view) // only a query reports an error of the build
  }
  await untilNoTask(warming)
  return (await look(warming)).signature
}

/** Whether so little is missing that a query after the swap waits no longer than usual while clients write. */
export const isNearly = ({ pending, seq }: ViewIndex): boolean => pending <= Math.max(100, (seq + pending) / 1000)

async function look(warming: Warming): Promise<ViewIndex> {
  const { couch, database, ddoc, onProgress, signal } = warming
  const read = () => readViewIndex(couch, database, copyId('staged', ddoc._id), { signal })
  const index = await withPatience(warming, read)
  const { seq, pending } = index
  onProgress({ kind: 'warming', database, ddoc: ddoc._id, done: seq, total: seq + pending })
  return index
}

function withPatience<T>(warming: Warming, request: () => Promise<T>): Promise<T> {
  const { clock, random, database, onProgress, signal } = warming
  const until = clock.ticks() + PATIENCE_MS
  const retryOf = ({ retry }: CouchError) => (retry === 'soon' && clock.ticks() < until ? 'soon' : 'never')
  const onTrouble = ({ reason }: CouchError) => onProgress({ kind: 'trouble', database, reason })
  return withRetries(request, { clock, random, signal, retryOf, onTrouble })
}

async function untilStill(warming: Warming): Promise<ViewIndex> {
  const pause = createPause(warming)
  for (;;) {
    await pause()
    const index = await look(warming)
    if (!index.isRunning) return index
  }
}

/** Queries the index as a user does. False if no answer came in time. Throws `index_failed` if the build fails. */
async function isCurrent({ couch, database, ddoc, signal }: Warming, view: string): Promise<boolean> {
  try {
    await queryViewIndex(couch, database, copyId('staged', ddoc._id), view, { signal })
    return true
  } catch (thrown) {
    if (!isCouchError(thrown)) throw thrown
    if (thrown.error === 'timeout' || (thrown.retry === 'soon' && thrown.code !== 'server')) return false
    if (thrown.code !== 'server' && thrown.code !== 'bad_request') throw thrown
    const text = `${database}/${ddoc._id}: CouchDB cannot build its index (${thrown.reason})`
    throw new DeployError('index_failed', [text, 'nothing was changed: correct its views, and deploy again'], {
      cause: thrown,
    })
  }
}

/** Waits for slower copies on a cluster. Returns at once if it may not read tasks: the fastest copy answers queries. */
async function untilNoTask(warming: Warming): Promise<void> {
  const { couch, database, ddoc, signal } = warming
  const pause = createPause(warming)
  for (;;) {
    const read = () => readIndexerTasks(couch, { signal })
    const tasks = await withPatience(warming, read).catch((thrown: unknown) => {
      if (isCouchError(thrown) && thrown.retry !== 'soon') return []
      throw thrown
    })
    if (!tasks.some((task) => task.database === database && task.ddoc === copyId('staged', ddoc._id))) return
    await pause()
  }
}

/** Pauses are short at first: most databases are small. */
function createPause({ clock, signal }: Surroundings): () => Promise<void> {
  let ms = LOOK.firstMs / 2
  return () => clock.sleep((ms = Math.min(ms * 2, LOOK.longestMs)), signal)
}
