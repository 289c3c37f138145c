/**
 * CouchDB ends an index when its last design document changes, and a query that waits at it in that moment gets 404 "Design
 * document was updated or deleted". What counts are the design documents by which it was queried since. So
 * the index that goes has a copy of its own during the swap, that was asked; and the one that comes is asked by its
 * real name before its copy goes. CouchDB hears of a design document a little after it was written, and then forgets
 * that it was asked: so neither is asked at once.
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
  /** Of the steps that are staged: what their indexes are called. */
  readonly signatures: ReadonlyMap<Step, string>
  /** Has at any time what is done. */
  readonly results: DdocResult[]
}

/** Writes what the plan says, and sees that the indexes that were warmed are those that answer. */
export async function swap(swapping: Swapping): Promise<void> {
  const { couch, plan, signatures, results, signal } = swapping
  const { database } = plan
  const ask = (ddoc: Doc) => buildViewIndex(couch, database.name, ddoc._id, viewNames(ddoc)[0]!, { signal })
  for (const step of signatures.keys()) if (step.kind === 'update') await ask(copyOf('previous', step.before))
  const write = async (step: Step) => {
    const result = await writeStep(database, step, { signal }) // not again: who was faster may have our place
    return signatures.has(step) ? { ...result, staged: true } : result
  }
  await writePlan(plan, results, write, signal)
  for (const [{ ddoc }, signature] of signatures) {
    await verify(swapping, ddoc._id, signature, () => ask(ddoc))
    await untilNobodyWaits(swapping, copyId('previous', ddoc._id))
  }
  for (const { ddoc } of signatures.keys()) await ask(ddoc)
}

const LOOKS = 50
const LOOK_MS = 200

/**
 * A node of a cluster may need a moment to hear of the new design document. Much may have been written since the index
 * was warmed, and no other query is needed.
 */
async function verify(
  { couch, plan, clock, signal }: Swapping,
  id: string,
  signature: string,
  ask: () => Promise<void>,
): Promise<void> {
  const { name } = plan.database
  for (let looks = 1; ; looks++) {
    const live = await readViewIndex(couch, name, id, { signal })
    if (live.signature === signature && isNearly(live)) return
    if (live.signature === signature && !live.isRunning) await ask()
    if (looks === LOOKS) {
      throw new DeployError('not_verified', [
        `${name}/${id}: expected the index ${signature}, complete, got ${live.signature} with ${live.pending} changes missing`,
        'deploy again, or put back what was there with --rollback',
      ])
    }
    await clock.sleep(LOOK_MS, signal)
  }
}

/** Who asked before the swap, and gets the old index up to date first. */
async function untilNobodyWaits({ couch, plan, clock, signal }: Swapping, id: string): Promise<void> {
  for (let looks = 1; looks <= LOOKS; looks++) {
    const { waiting, isRunning } = await readViewIndex(couch, plan.database.name, id, { signal })
    if (waiting === 0 && !isRunning) return
    await clock.sleep(LOOK_MS, signal)
  }
}
