import type { CallOptions, Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { compareDdocs, type Change } from './compare.ts'
import { finishDdoc, type Finished } from './keep-machines.ts'
import { sameIndex, viewNames, OWN_PREFIX } from './staging/copy.ts'

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

/** Again for one document, when another deploy has written it meanwhile. */
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

/** Whether it takes away an index that may be in use, and puts one that is not built in its place. */
export const replacesIndex = (step: Step): boolean =>
  step.kind === 'update' &&
  viewNames(step.before).length > 0 &&
  viewNames(step.ddoc).length > 0 &&
  !sameIndex(step.before, step.ddoc)

/**
 * The design documents of a database that a folder does not have, as far as one may be made from a folder at all. Not
 * CouchDB's own, not the sidecar's, and no index of Mango: those are made by a request.
 */
async function findObsolete(
  database: Database,
  wanted: readonly string[],
  options?: CallOptions,
): Promise<StoredDoc[]> {
  const there = await database.withPrefix('_design/', options)
  const ids = there.filter((ddoc) => !wanted.includes(ddoc._id) && !isSpared(ddoc)).map(({ _id }) => _id)
  const found = await Promise.all(ids.map((id) => database.find(id, { attachments: true }, options)))
  return found.filter((ddoc) => ddoc !== undefined)
}

const isSpared = ({ _id, language }: StoredDoc): boolean =>
  _id.startsWith('_design/_') || _id.startsWith(OWN_PREFIX) || _id === '_design/docstate' || language === 'query'

/** What decides the signature of an index, in a fixed order of keys: CouchDB takes another order for another index. */
const ORDERED = ['language', 'options', 'views'] as const

/**
 * The design document with the order that its views have in the database: those that are new come after them, by their
 * names. Files have no order that one could rely on, and an index that is built must not be built again for that.
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
