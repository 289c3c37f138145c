import type { CallOptions, Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { compareDdocs, type Change } from './compare.ts'
import { finishDdoc, type Finished } from './keep-machines.ts'
import { sameIndex, viewNames, OWN_PREFIX } from './staging/copy.ts'

/** A design document to deploy. */
export interface Wanted {
  /** The document as compiled, for any database. */
  readonly compiled: Doc
  /** Removes machines that only the database declares. */
  readonly removeMachines: boolean
}

/** The work for one design document. `ddoc` is the document to write, `kept` lists types that stay in it. */
export type Step = Wanted &
  Finished &
  (
    | { readonly kind: 'keep' }
    | { readonly kind: 'create'; readonly changes: readonly Change[] }
    | { readonly kind: 'update'; readonly before: StoredDoc; readonly changes: readonly Change[] }
  )

export interface Plan {
  readonly database: Database
  /** False if the database must be created first. */
  readonly exists: boolean
  readonly steps: readonly Step[]
  /** Design documents to remove, as stored. */
  readonly obsolete: readonly StoredDoc[]
}

export interface PlanOptions {
  readonly database: Database
  readonly exists: boolean
  readonly ddocs: readonly Wanted[]
  /** Removes all other design documents (see `findObsolete`). */
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

/** Plans one document. Call it again if another deploy has written the document meanwhile. */
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

/** Whether the step replaces an index that may be in use with one that is not built. */
export const replacesIndex = (step: Step): boolean =>
  step.kind === 'update' &&
  viewNames(step.before).length > 0 &&
  viewNames(step.ddoc).length > 0 &&
  !sameIndex(step.before, step.ddoc)

/**
 * Design documents of a database that the folder does not have, if a folder can hold such a document. The list omits
 * CouchDB's own, the sidecar's, and Mango indexes, which clients create by a request.
 */
async function findObsolete(
  database: Database,
  wanted: readonly string[],
  options?: CallOptions,
): Promise<StoredDoc[]> {
  const current = await database.withPrefix('_design/', options)
  const ids = current.filter((ddoc) => !wanted.includes(ddoc._id) && !isSpared(ddoc)).map(({ _id }) => _id)
  const found = await Promise.all(ids.map((id) => database.find(id, { attachments: true }, options)))
  return found.filter((ddoc) => ddoc !== undefined)
}

const isSpared = ({ _id, language }: StoredDoc): boolean =>
  _id.startsWith('_design/_') || _id.startsWith(OWN_PREFIX) || _id === '_design/docstate' || language === 'query'

/** Fields that decide an index's signature, in a fixed order: for CouchDB, another order of keys is another index. */
const ORDERED = ['language', 'options', 'views'] as const

/**
 * Sorts the views as in the database's design document; new views follow, by name. Files have no reliable order, and
 * a different order would cause a rebuild of the index.
 */
export function keepOrder(ddoc: Doc, current: Doc | undefined): Doc {
  const present = ORDERED.filter((field) => ddoc[field] !== undefined)
  const ordered = present.map((field) => [field, inOrderOf(current?.[field], ddoc[field])] as const)
  return { ...ddoc, ...Object.fromEntries(ordered) }
}

function inOrderOf(model: unknown, value: unknown): unknown {
  if (!isObject(value)) return value
  const known = isObject(model) ? model : {}
  const first = Object.keys(known).filter((key) => Object.hasOwn(value, key))
  const more = Object.keys(value).filter((key) => !Object.hasOwn(known, key))
  const keys = [...first, ...more.sort()]
  return Object.fromEntries(keys.map((key) => [key, inOrderOf(known[key], value[key])]))
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
