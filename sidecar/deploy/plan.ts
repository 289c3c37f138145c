import type { CallOptions, Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/errors.ts'
import { compareDdocs, type Change } from './compare.ts'
import { finishDdoc, type Finished } from './keep-machines.ts'

/** A design document on its way into a database. */
export interface Wanted {
  /** As it was compiled. */
  readonly compiled: Doc
  /** Takes out machines that only the database declares. */
  readonly removeMachines: boolean
}

/** What has to be done for one design document. `ddoc` is what the database is to have, `kept` what stays in that. */
export type Step = Wanted &
  Finished &
  (
    | { readonly kind: 'keep' }
    | { readonly kind: 'create'; readonly changes: readonly Change[] }
    | { readonly kind: 'update'; readonly rev: string; readonly changes: readonly Change[] }
  )

export interface Plan {
  readonly database: Database
  /** False if the database has to be made first. */
  readonly exists: boolean
  readonly steps: readonly Step[]
}

export interface PlanOptions {
  readonly database: Database
  readonly ddocs: readonly Wanted[]
  readonly signal?: AbortSignal | undefined
}

/** Compares design documents with those of a database. Writes nothing. Throws `CouchError`. */
export async function planDeploy({ database, ddocs, signal }: PlanOptions): Promise<Plan> {
  const exists = await isThere(database, signal)
  const steps: Step[] = []
  for (const wanted of ddocs)
    steps.push(exists ? await planStep(database, wanted, { signal }) : stepTo(wanted, undefined))
  return { database, exists, steps }
}

/** Again for one document, when somebody else has written it meanwhile. */
export async function planStep(database: Database, wanted: Wanted, options?: CallOptions): Promise<Step> {
  return stepTo(wanted, await database.find(wanted.compiled._id, { attachments: true }, options))
}

function stepTo({ compiled, removeMachines }: Wanted, current: StoredDoc | undefined): Step {
  const finished = finishDdoc(compiled, current, removeMachines)
  const step = { compiled, removeMachines, ...finished }
  const changes = compareDdocs(current, finished.ddoc)
  if (!current) return { ...step, kind: 'create', changes }
  return changes.length === 0 ? { ...step, kind: 'keep' } : { ...step, kind: 'update', rev: current._rev, changes }
}

async function isThere(database: Database, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await database.info({ signal })
    return true
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return false
    throw thrown
  }
}
