/**
 * Brings design documents into databases. Everything is compiled and tried, and every database is looked at, before
 * the first write; what is equal is not written, so a run that was cut short is finished by the next.
 *
 * Compile, plan, write are three steps with values between them: staging a changed index goes between the last two.
 */
import type { Machines } from '../../ddocs/machine.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/errors.ts'
import type { Target } from './bundle.ts'
import { compileFolder } from './compile.ts'
import { detectEngine } from './detect.ts'
import { DeployError } from './errors.ts'
import { explainFailure } from './explain-failure.ts'
import { planDeploy, type Plan, type Wanted } from './plan.ts'
import type { DatabaseReport, DdocResult, DeployReport } from './report.ts'
import { tellProgress } from './tell-progress.ts'
import { writeStep } from './write-step.ts'

/** The design documents of one database. */
export interface Deployment {
  readonly database: string
  /** Of one kind of database: one folder in it for each design document (see `ddocsFolder`). */
  readonly folder: string
  /** The machines of this database, for the design document `docstate`. */
  readonly machines?: Machines | undefined
}

export interface DeployOptions {
  readonly couch: Couch
  readonly deployments: readonly Deployment[]
  /** Only say what would be done. */
  readonly dryRun?: boolean | undefined
  /** Take out machines that a database declares and its deployment does not; by default they stay. */
  readonly removeMachines?: boolean | undefined
  /** Make a database that is not there. */
  readonly createDatabases?: boolean | undefined
  /** Default: what the server's engine needs. */
  readonly target?: Target | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Compiles, compares and writes. Throws `DeployError` with one clear message; after `ddocs_broken` and `no_database`
 * nothing has been written.
 */
export async function deployDdocs(options: DeployOptions): Promise<DeployReport> {
  const { couch, deployments, dryRun = false, createDatabases = false, removeMachines = false, signal } = options
  const plans: Plan[] = []
  const done: DatabaseReport[] = []
  let planned = false
  try {
    const engine = await detectEngine(couch, signal)
    const target = options.target ?? engine.target
    const wanted: { database: string; ddocs: Wanted[] }[] = []
    for (const deployment of deployments) {
      const compiled = await compileFolder({ ...deployment, target })
      const ddocs = compiled.map((compiled) => ({ compiled, removeMachines }))
      wanted.push({ database: deployment.database, ddocs })
    }
    for (const { database, ddocs } of wanted) {
      plans.push(await planDeploy({ database: couch.db(database), ddocs, signal }))
    }
    if (!createDatabases) refuseMissing(plans, couch.url)
    planned = true
    if (dryRun) done.push(...plans.map(foresee))
    else for (const plan of plans) await carryOut(plan, done, signal)
    return { url: couch.url, engine: engine.name, target, databases: done }
  } catch (thrown) {
    const midway = planned && (signal?.aborted === true || isCouchError(thrown))
    throw explainFailure(thrown, couch.url, midway ? await tellProgress(plans, done) : [])
  }
}

function refuseMissing(plans: readonly Plan[], url: string): void {
  const missing = plans.filter(({ exists }) => !exists).map(({ database }) => database.name)
  if (missing.length === 0) return
  throw new DeployError('no_database', [`${url} has no database ${missing.join(', ')}: create it first`])
}

function foresee({ database, exists, steps }: Plan): DatabaseReport {
  const ddocs = steps.map((step): DdocResult => {
    const result = { id: step.ddoc._id, ...(step.kept.length > 0 && { kept: step.kept }) }
    if (step.kind === 'keep') return { kind: 'unchanged', ...result }
    return { kind: `would-${step.kind}`, changes: step.changes, ...result }
  })
  return { database: database.name, result: exists ? 'there' : 'would-create', ddocs }
}

/** `done` knows at any time how far it came. */
async function carryOut({ database, exists, steps }: Plan, done: DatabaseReport[], signal: AbortSignal | undefined) {
  const created = !exists && (await database.create({ signal }))
  const ddocs: DdocResult[] = []
  done.push({ database: database.name, result: created ? 'created' : 'there', ddocs })
  for (const step of steps) ddocs.push(await writeStep(database, step, signal))
}
