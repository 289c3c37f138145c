import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import { planStep, type Plan, type Step } from './plan.ts'
import type { DatabaseReport } from './report.ts'

interface Pending {
  readonly name: string
  readonly database: Database
  readonly step: Step
}

/** The server may be the trouble: this is no time for patience. */
const LOOK_MS = 5000

/**
 * How far a deploy came in the database where it broke off, as sentences: what was written, what was not, and what
 * nobody knows. CouchDB writes each document by itself, also those of one `_bulk_docs`. A write without an answer may
 * have arrived, so the document is looked at.
 */
export async function tellProgress({ database, steps }: Plan, done: DatabaseReport): Promise<string[]> {
  const nameOf = (id: string) => `${database.name}/${id}`
  const settled = done.ddocs.map(({ id }) => id)
  const written = [
    ...(done.result === 'created' ? [`the database ${database.name}`] : []),
    ...done.ddocs.flatMap(({ kind, id }) => (kind === 'unchanged' ? [] : [nameOf(id)])),
  ]
  const missing = steps.flatMap((step): Pending[] =>
    step.kind === 'keep' || settled.includes(step.ddoc._id) ? [] : [{ name: nameOf(step.ddoc._id), database, step }],
  )
  const [failed, ...rest] = missing
  if (!failed) return []
  const outcome = await outcomeOf(failed)
  if (outcome === 'written') written.push(failed.name)
  const unwritten = [...(outcome === 'missing' ? [failed] : []), ...rest].map(({ name }) => name)
  return [
    written.length > 0 ? `written before that: ${written.join(', ')}` : 'nothing was written before that',
    ...(outcome === 'unknown' ? [`written or not, nobody knows: ${failed.name}`] : []),
    ...(unwritten.length > 0 ? [`not written: ${unwritten.join(', ')}`] : []),
    'another run does the rest',
  ]
}

async function outcomeOf({ database, step }: Pending): Promise<'written' | 'missing' | 'unknown'> {
  try {
    const { kind } = await planStep(database, step, { timeoutMs: LOOK_MS })
    return kind === 'keep' ? 'written' : 'missing'
  } catch (thrown) {
    if (isCouchError(thrown)) return 'unknown'
    throw thrown
  }
}
