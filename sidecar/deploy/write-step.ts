import type { CallOptions, Database } from '../couch/database.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import type { DdocResult } from './report.ts'
import { planStep, type Plan, type Step } from './plan.ts'

/** Maximum tries. Two concurrent deploys need two; more mean that a program keeps rewriting the document. */
const ROUNDS = 5

/**
 * Carries out a plan, one document at a time. Throws `CouchError`.
 *
 * @param results receives each result at once
 * @param write writes one document
 */
export async function writePlan(
  { database, steps, obsolete }: Plan,
  results: DdocResult[],
  write: (step: Step) => Promise<DdocResult>,
  signal?: AbortSignal,
): Promise<void> {
  for (const step of steps) results.push(await write(step))
  for (const { _id: id, _rev } of obsolete) {
    await database.remove(id, _rev, { signal })
    results.push({ kind: 'removed', id })
  }
}

/** Writes one design document. If another deploy was first, it plans again and retries. */
export async function writePatiently(database: Database, planned: Step, options?: CallOptions): Promise<DdocResult> {
  let isPlanned = true
  let step = planned
  return repeatOnConflict(ROUNDS, async () => {
    if (!isPlanned) step = await planStep(database, step, options)
    isPlanned = false
    return writeStep(database, step, options)
  })
}

/** Writes one design document as planned. Throws `conflict` if another deploy was first. */
export async function writeStep(database: Database, step: Step, options?: CallOptions): Promise<DdocResult> {
  const { ddoc, kept } = step
  const result = { id: ddoc._id, ...(kept.length > 0 && { kept }) }
  if (step.kind === 'keep') return { kind: 'unchanged', ...result }
  await database.put(step.kind === 'update' ? { ...ddoc, _rev: step.before._rev } : ddoc, options)
  return { kind: step.kind === 'update' ? 'updated' : 'created', changes: step.changes, ...result }
}
