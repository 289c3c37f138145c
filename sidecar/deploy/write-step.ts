import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import type { DdocResult } from './report.ts'
import { planStep, type Step } from './plan.ts'

/** Two deploys at a time settle in one round; more rounds than this and something rewrites it without end. */
const ROUNDS = 5

/** Writes one design document. Where somebody was faster, compares again with what is there now. */
export async function writeStep(database: Database, planned: Step, signal?: AbortSignal): Promise<DdocResult> {
  let step = planned
  for (let round = 1; ; round++) {
    const { ddoc, kept } = step
    const result = { id: ddoc._id, ...(kept.length > 0 && { kept }) }
    if (step.kind === 'keep') return { kind: 'unchanged', ...result }
    try {
      await database.put(step.kind === 'update' ? { ...ddoc, _rev: step.rev } : ddoc, { signal })
      return { kind: step.kind === 'update' ? 'updated' : 'created', changes: step.changes, ...result }
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict') || round === ROUNDS) throw thrown
    }
    step = await planStep(database, step, { signal })
  }
}
