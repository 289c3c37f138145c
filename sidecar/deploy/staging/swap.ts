/**
 * CouchDB ends an index when its last design document changes. A query that waits at the index then gets 404 "Design
 * document was updated or deleted". Only design documents by which the index was queried count. So during the swap the
 * old index has a copy, and the swap queries it by that copy. It queries the new index by its real name before it
 * removes the copy of that index. CouchDB notices a written design document with a delay, and then forgets earlier
 * queries by it. So the swap queries neither index right after the write.
 */
import type { Couch } from '../../couch/client.ts'
import type { Doc } from '../../couch/documents.ts'
import { buildViewIndex, readViewIndex } from '../../indexes/view-index.ts'
import { DeployError } from '../deploy-errors.ts'
import type { Plan, Step } from '../plan.ts'
import type { DdocResult } from '../report.ts'
import { writePlan, writeStep } from '../write-step.ts'
import { copyId, copyOf, viewNames } from './copy.ts'
import type { Surroundings } from './surroundings.ts'
import { isNearly } from './warm.ts'

export interface Swapping extends Surroundings {
  readonly couch: Couch
  readonly plan: Plan
  /** Index signatures of the staged steps. */
  readonly signatures: ReadonlyMap<Step, string>
  /** Receives each result at once. */
  readonly results: DdocResult[]
}

/** Writes the plan, and verifies that the warmed indexes answer queries. */
export async function swap(swapping: Swapping): Promise<void> {
  const { couch, plan, signatures, results, signal } = swapping
  const { database } = plan
  const build = (ddoc: Doc) => buildViewIndex(couch, database.name, ddoc._id, viewNames(ddoc)[0]!, { signal })
  for (const step of signatures.keys()) if (step.kind === 'update') await build(copyOf('previous', step.before))
  const write = async (step: Step) => {
    const result = await writeStep(database, step, { signal }) // no retry: a faster deploy may have taken over
    return signatures.has(step) ? { ...result, staged: true } : result
  }
  await writePlan(plan, results, write, signal)
  for (const [{ ddoc }, signature] of signatures) {
    await verify(swapping, ddoc._id, signature, () => build(ddoc))
    await untilNoneWaits(swapping, copyId('previous', ddoc._id))
  }
  for (const { ddoc } of signatures.keys()) await build(ddoc)
}

const LOOKS = 50
const LOOK_MS = 200

/**
 * Waits for the new index: a cluster node may notice the new design document late. If clients wrote much since the
 * warming, it starts the build itself, so that no other query is needed.
 */
async function verify(
  { couch, plan, clock, signal }: Swapping,
  id: string,
  signature: string,
  build: () => Promise<void>,
): Promise<void> {
  const { name } = plan.database
  for (let looks = 1; ; looks++) {
    const live = await readViewIndex(couch, name, id, { signal })
    if (live.signature === signature && isNearly(live)) return
    if (live.signature === signature && !live.isRunning) await build()
    if (looks === LOOKS) {
      throw new DeployError('not_verified', [
        `${name}/${id}: expected the index ${signature}, complete, got ${live.signature} with ${live.pending} changes missing`,
        'deploy again, or restore the previous version with --rollback',
      ])
    }
    await clock.sleep(LOOK_MS, signal)
  }
}

/** Waits for queries from before the swap, for which the old index must first be brought up to date. */
async function untilNoneWaits({ couch, plan, clock, signal }: Swapping, id: string): Promise<void> {
  for (let looks = 1; looks <= LOOKS; looks++) {
    const { waiting, isRunning } = await readViewIndex(couch, plan.database.name, id, { signal })
    if (waiting === 0 && !isRunning) return
    await clock.sleep(LOOK_MS, signal)
  }
}
