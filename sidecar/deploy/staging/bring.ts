/**
 * Carries out a plan in a database, so that no query meets an index that is not built. The record names each step
 * before the step begins, and each step first reads the current state. So the next run resumes a killed one with the
 * same steps.
 */
import type { Couch } from '../../couch/client.ts'
import type { Doc } from '../../couch/documents.ts'
import { buildViewIndex, readViewIndex } from '../../indexes/view-index.ts'
import { digestOf } from '../compare.ts'
import { DeployError } from '../deploy-errors.ts'
import { replacesIndex, type Plan, type Step } from '../plan.ts'
import type { DdocResult } from '../report.ts'
import { writePlan, writeStep } from '../write-step.ts'
import { putCopy, removeCopies, removeIndexFiles } from './copies.ts'
import { copyId, copyOf, viewNames } from './copy.ts'
import type { Hold } from './hold.ts'
import type { DeployRecord } from './record.ts'
import type { Surroundings } from './surroundings.ts'
import { isNearly, warm } from './warm.ts'

export interface Bringing extends Surroundings {
  readonly couch: Couch
  readonly plan: Plan
  readonly hold: Hold
  /** Ids of the design documents of this deploy. Default: all in the record. */
  readonly only?: readonly string[]
  /** Receives each result at once. */
  readonly results: DdocResult[]
}

export async function bring(bringing: Bringing): Promise<void> {
  const { plan, hold } = bringing
  const { steps, obsolete } = plan
  const signatures = await stage(bringing)
  if (obsolete.length > 0 || steps.some(({ kind }) => kind !== 'keep')) {
    const { previous, known } = hold.record
    await hold.note('swapping', { previous: { ...previousOf(plan), ...previous }, known: knownOf(plan, known) })
  }
  await swap(bringing, signatures)
  await hold.note('cleaning')
  await cleanUp(bringing)
}

/** Builds the indexes, one at a time. Returns their signatures. */
async function stage(bringing: Bringing): Promise<ReadonlyMap<Step, string>> {
  const { couch, plan, hold, signal } = bringing
  const { database } = plan
  const steps = plan.steps.filter(replacesIndex)
  const warmed = (ddoc: Doc) => warm({ ...bringing, database: database.name, ddoc })
  const signatures = new Map<Step, string>()
  try {
    const stay = steps.flatMap(({ ddoc }) => [copyId('staged', ddoc._id), copyId('previous', ddoc._id)])
    if (await removeCopies(database, stay, signal)) await removeIndexFiles(couch, database, signal)
    for (const step of steps) {
      const { ddoc } = step
      await hold.note('staging', { ddoc: ddoc._id })
      await putCopy(database, copyOf('staged', ddoc), signal)
      await warmed(ddoc)
      if (step.kind === 'update') await putCopy(database, copyOf('previous', step.before), signal)
      await hold.note('warmed', { ddoc: ddoc._id })
    }
    for (const step of steps) signatures.set(step, await warmed(step.ddoc)) // earlier indexes became stale meanwhile
    return signatures
  } catch (thrown) {
    const canNever = thrown instanceof DeployError && thrown.code === 'index_failed'
    if (canNever && Object.keys(hold.record.previous).length === 0) await cleanUp(bringing)
    throw thrown
  }
}

/**
 * Writes the plan, and verifies that the warmed indexes answer queries.
 *
 * CouchDB ends an index when its last design document changes. A query that waits at the index then gets 404 "Design
 * document was updated or deleted". Only design documents by which the index was queried count. So during the swap the
 * old index has a copy, and the swap queries it by that copy. It queries the new index by its real name before it
 * removes the copy of that index. CouchDB notices a written design document with a delay, and then forgets earlier
 * queries by it. So the swap queries neither index right after the write.
 *
 * @param signatures index signatures of the staged steps
 */
async function swap(bringing: Bringing, signatures: ReadonlyMap<Step, string>): Promise<void> {
  const { couch, plan, results, signal } = bringing
  const { database } = plan
  const build = (ddoc: Doc) => buildViewIndex(couch, database.name, ddoc._id, viewNames(ddoc)[0]!, { signal })
  for (const step of signatures.keys()) if (step.kind === 'update') await build(copyOf('previous', step.before))
  const write = async (step: Step) => {
    const result = await writeStep(database, step, { signal }) // no retry: a faster deploy may have taken over
    return signatures.has(step) ? { ...result, staged: true } : result
  }
  await writePlan(plan, results, write, signal)
  for (const [{ ddoc }, signature] of signatures) {
    await verify(bringing, ddoc._id, signature, () => build(ddoc))
    await untilNoneWaits(bringing, copyId('previous', ddoc._id))
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
  { couch, plan, clock, signal }: Bringing,
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
async function untilNoneWaits({ couch, plan, clock, signal }: Bringing, id: string): Promise<void> {
  for (let looks = 1; looks <= LOOKS; looks++) {
    const { waiting, isRunning } = await readViewIndex(couch, plan.database.name, id, { signal })
    if (waiting === 0 && !isRunning) return
    await clock.sleep(LOOK_MS, signal)
  }
}

async function cleanUp({ couch, plan: { database }, hold, only, signal }: Bringing): Promise<void> {
  await removeCopies(database, [], signal)
  await removeIndexFiles(couch, database, signal)
  await hold.complete(only)
}

/** The previous documents, for a rollback. They have no revisions, because a rollback writes new revisions. */
function previousOf({ steps, obsolete }: Plan): Record<string, Doc | null> {
  const changed = steps.flatMap((step): [string, Doc | null][] => {
    if (step.kind === 'keep') return []
    return [[step.ddoc._id, step.kind === 'update' ? withoutRev(step.before) : null]]
  })
  return Object.fromEntries([...changed, ...obsolete.map((ddoc) => [ddoc._id, withoutRev(ddoc)] as const)])
}

/** Digests of the versions of this deploy, so that a rollback does not touch later versions of others. */
function knownOf({ steps, obsolete }: Plan, known: DeployRecord['known']): DeployRecord['known'] {
  const changed = steps.flatMap((step) => {
    if (step.kind === 'keep') return []
    return step.kind === 'update' ? [step.before, step.ddoc] : [step.ddoc]
  })
  const all: Record<string, readonly string[]> = { ...known }
  for (const ddoc of [...changed, ...obsolete]) all[ddoc._id] = [...(all[ddoc._id] ?? []), digestOf(ddoc)]
  return all
}

const withoutRev = ({ _rev, ...doc }: Doc): Doc => doc
