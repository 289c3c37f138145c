import type { Database } from '../couch/database.ts'
import type { Doc } from '../couch/documents.ts'
import { isCouchError } from '../couch/errors.ts'
import { compareDdocs, type Change } from './compare.ts'

/** What has to be done for one design document. */
export type Step =
  | { readonly kind: 'keep'; readonly ddoc: Doc }
  | { readonly kind: 'create'; readonly ddoc: Doc; readonly changes: readonly Change[] }
  | { readonly kind: 'update'; readonly ddoc: Doc; readonly rev: string; readonly changes: readonly Change[] }

export interface Plan {
  readonly database: Database
  /** False if the database has to be made first. */
  readonly exists: boolean
  readonly steps: readonly Step[]
}

export interface PlanOptions {
  readonly database: Database
  readonly ddocs: readonly Doc[]
  readonly signal?: AbortSignal | undefined
}

/** Compares design documents with those of a database. Writes nothing. Throws `CouchError`. */
export async function planDeploy({ database, ddocs, signal }: PlanOptions): Promise<Plan> {
  const exists = await isThere(database, signal)
  const steps: Step[] = []
  for (const ddoc of ddocs) steps.push(exists ? await planStep(database, ddoc, signal) : creation(ddoc))
  return { database, exists, steps }
}

/** Again for one document, when somebody else has written it meanwhile. */
export async function planStep(database: Database, ddoc: Doc, signal?: AbortSignal): Promise<Step> {
  const current = await database.find(ddoc._id, { attachments: true }, { signal })
  if (!current) return creation(ddoc)
  const changes = compareDdocs(current, ddoc)
  return changes.length === 0 ? { kind: 'keep', ddoc } : { kind: 'update', ddoc, rev: current._rev, changes }
}

const creation = (ddoc: Doc): Step => ({ kind: 'create', ddoc, changes: compareDdocs(undefined, ddoc) })

async function isThere(database: Database, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await database.info({ signal })
    return true
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return false
    throw thrown
  }
}
