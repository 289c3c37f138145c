import type { CallOptions, Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { compareDdocs, type Change } from './compare.ts'
import { finishDdoc, type Finished } from './keep-machines.ts'
import { keepOrder } from './keep-order.ts'
import { findObsolete } from './obsolete.ts'
import { sameIndex, viewNames } from './staging/copy.ts'

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
    | { readonly kind: 'update'; readonly before: StoredDoc; readonly changes: readonly Change[] }
  )

export interface Plan {
  readonly database: Database
  /** False if the database has to be made first. */
  readonly exists: boolean
  readonly steps: readonly Step[]
  /** Design documents that are to go, as they are. */
  readonly obsolete: readonly StoredDoc[]
}

export interface PlanOptions {
  readonly database: Database
  readonly exists: boolean
  readonly ddocs: readonly Wanted[]
  /** Whatever else is there is to go. */
  readonly prune?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** Compares design documents with those of a database. Writes nothing. Throws `CouchError`. */
export async function planDeploy({ database, exists, ddocs, prune = false, signal }: PlanOptions): Promise<Plan> {
  const steps: Step[] = []
  for (const wanted of ddocs)
    steps.push(exists ? await planStep(database, wanted, { signal }) : stepTo(wanted, undefined))
  const wantedIds = ddocs.map(({ compiled }) => compiled._id)
  const obsolete = exists && prune ? await findObsolete(database, wantedIds, { signal }) : []
  return { database, exists, steps, obsolete }
}

/** Again for one document, when somebody else has written it meanwhile. */
export async function planStep(database: Database, wanted: Wanted, options?: CallOptions): Promise<Step> {
  return stepTo(wanted, await database.find(wanted.compiled._id, { attachments: true }, options))
}

function stepTo({ compiled, removeMachines }: Wanted, before: StoredDoc | undefined): Step {
  const finished = finishDdoc(compiled, before, removeMachines)
  const step = { compiled, removeMachines, ...finished, ddoc: keepOrder(finished.ddoc, before) }
  const changes = compareDdocs(before, step.ddoc)
  if (!before) return { ...step, kind: 'create', changes }
  return changes.length === 0 ? { ...step, kind: 'keep' } : { ...step, kind: 'update', before, changes }
}

/** Whether it takes away an index that somebody may be asking, and puts one that is not built in its place. */
export const replacesIndex = (step: Step): boolean =>
  step.kind === 'update' &&
  viewNames(step.before).length > 0 &&
  viewNames(step.ddoc).length > 0 &&
  !sameIndex(step.before, step.ddoc)
