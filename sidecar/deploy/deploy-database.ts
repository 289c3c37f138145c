import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import type { Doc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { freeDisk } from '../indexes/disk.ts'
import { readViewIndex } from '../indexes/view-index.ts'
import { DeployError } from './deploy-errors.ts'
import { explainFailure } from './explain-failure.ts'
import { planDeploy, replacesIndex, type Plan, type PlanOptions, type Step, planStep } from './plan.ts'
import type { DatabaseReport, DdocResult } from './report.ts'
import { bring } from './staging/bring.ts'
import { withHold } from './staging/hold.ts'
import { removeIndexFiles } from './staging/copies.ts'
import { copyId } from './staging/copy.ts'
import type { Surroundings } from './staging/surroundings.ts'
import { readRecord } from './staging/record.ts'
import { writePatiently, writePlan } from './write-step.ts'
import type { Database } from '../couch/database.ts'

export interface DatabaseJob extends Omit<PlanOptions, 'signal'>, Surroundings {
  readonly couch: Couch
  readonly dryRun: boolean
  readonly checkDisk: boolean
}

/** Deploys to one database. The report holds any failure: the next database may succeed. */
export async function deployDatabase(job: DatabaseJob): Promise<DatabaseReport> {
  const { couch, database, exists, dryRun, signal } = job
  const results: DdocResult[] = []
  let result: DatabaseReport['result'] = 'there'
  let plan: Plan | undefined
  let isHeld = false
  try {
    plan = await planDeploy(job)
    if (dryRun) return foresee(plan, await stagedOf(couch, plan, signal))
    if (!exists && (await database.create({ signal }))) result = 'created'
    await carryOut(job, plan, results, () => (isHeld = true))
    return { database: database.name, result, ddocs: results }
  } catch (thrown) {
    const midway = plan !== undefined && (signal.aborted || isCouchError(thrown))
    const done = { database: database.name, result, ddocs: results }
    const progress = midway ? await describeProgress(plan!, done) : []
    if (midway && isHeld)
      progress.push('until then the previous version answers; --rollback removes the unfinished one')
    const failure = explainFailure(thrown, couch.url, progress)
    if (!(failure instanceof DeployError)) throw failure
    return { ...done, failure }
  }
}

async function carryOut(job: DatabaseJob, plan: Plan, results: DdocResult[], onHold: () => void): Promise<void> {
  const { couch, database, checkDisk, signal } = job
  const { exists, steps, obsolete } = plan
  const staged = await stagedOf(couch, plan, signal)
  const record = exists ? await readRecord(database, { signal }) : undefined
  const only = idsOf([...steps.map(({ ddoc }) => ddoc), ...obsolete])
  const isOurs = record?.ddocs.some((id) => only.includes(id))
  if (staged.length === 0 && !isOurs) {
    await writePlan(plan, results, (step) => writePatiently(database, step, { signal }), signal)
    if (obsolete.length > 0 || steps.some(replacesIndex)) await removeIndexFiles(couch, database, signal)
    return
  }
  const changed = [...steps.filter(({ kind }) => kind !== 'keep').map(({ ddoc }) => ddoc), ...obsolete]
  if (checkDisk) await refuseWithoutRoom(couch, database.name, idsOf(staged.map(({ ddoc }) => ddoc)), signal)
  await withHold(database, idsOf(changed), job, async (hold) => {
    onHold()
    await bring({ ...job, plan: await planDeploy(job), hold, only, results }) // the last holder may have written documents
  })
}

const idsOf = (ddocs: readonly Doc[]): string[] => ddocs.map(({ _id }) => _id)

/** Steps whose index is built first. None on pouchdb-server, which does not report the progress of an index. */
async function stagedOf(couch: Couch, { database, steps }: Plan, signal?: AbortSignal): Promise<readonly Step[]> {
  const staged = steps.filter(replacesIndex)
  try {
    if (staged[0]) await readViewIndex(couch, database.name, staged[0].ddoc._id, { signal })
    return staged
  } catch (thrown) {
    if (isCouchError(thrown, 'garbled')) return []
    throw thrown
  }
}

/** Factor: an index takes more space during its build than after compaction. */
const MARGIN = 2

/**
 * Throws `DeployError` `no_space` if the disk is known to lack space for second indexes of these design documents. The
 * estimate is the size of the current index, or of the documents if that index was never built. Parts that an earlier
 * run has built are subtracted.
 */
async function refuseWithoutRoom(
  couch: Couch,
  database: string,
  ddocs: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const disk = await freeDisk(couch, { signal })
  if (!disk) return
  let needed = 0
  for (const id of ddocs) {
    const { bytes, seq } = await readViewIndex(couch, database, id, { signal })
    const size = seq > 0 ? bytes : await documentBytes(couch, database, signal)
    needed += Math.max(0, size * MARGIN - (await stagedBytes(couch, database, id, signal)))
  }
  if (needed <= disk.freeBytes) return
  throw new DeployError('no_space', [
    `${database}: a second index of ${ddocs.join(', ')} may need ${inWords(needed)}, but ${inWords(disk.freeBytes)} are free on CouchDB's disk`,
    'nothing was changed: free some space, or try with --no-disk-check',
  ])
}

const sizesOf = z.object({ sizes: z.object({ active: z.number().optional() }).optional() })

async function documentBytes(couch: Couch, db: string, signal: AbortSignal): Promise<number> {
  const { sizes } = await couch.request({ db, signal }, sizesOf)
  return sizes?.active ?? 0
}

async function stagedBytes(couch: Couch, db: string, id: string, signal: AbortSignal): Promise<number> {
  try {
    return (await readViewIndex(couch, db, copyId('staged', id), { signal })).bytes
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return 0
    throw thrown
  }
}

const inWords = (bytes: number): string => {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return `${(bytes / 1000 ** power).toFixed(power > 0 ? 1 : 0)} ${units[power]}`
}

function foresee({ database, exists, steps, obsolete }: Plan, staged: readonly Step[]): DatabaseReport {
  const ddocs = steps.map((step): DdocResult => {
    const result = { id: step.ddoc._id, ...(step.kept.length > 0 && { kept: step.kept }) }
    if (step.kind === 'keep') return { kind: 'unchanged', ...result }
    return {
      kind: `would-${step.kind}`,
      changes: step.changes,
      ...result,
      ...(staged.includes(step) && { staged: true }),
    }
  })
  const removed = obsolete.map(({ _id }): DdocResult => ({ kind: 'would-remove', id: _id }))
  return { database: database.name, result: exists ? 'there' : 'would-create', ddocs: [...ddocs, ...removed] }
}

interface Pending {
  readonly name: string
  readonly database: Database
  readonly step: Step
}

/** Short, because the server may be the cause of the failure. */
const LOOK_MS = 5000

/**
 * Describes how far an interrupted deploy came in its database: documents written, not written, and unknown. CouchDB
 * writes each document separately, even in one `_bulk_docs`. A write without an answer may have arrived, so this
 * reads the document again.
 */
async function describeProgress({ database, steps }: Plan, done: DatabaseReport): Promise<string[]> {
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
    ...(outcome === 'unknown' ? [`unknown whether it was written: ${failed.name}`] : []),
    ...(unwritten.length > 0 ? [`not written: ${unwritten.join(', ')}`] : []),
    'run the deploy again for the rest',
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
