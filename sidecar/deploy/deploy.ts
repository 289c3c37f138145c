/**
 * Brings design documents into databases. Everything is compiled and tried, and every database is looked at, before
 * the first write; what is equal is not written, so a run that was cut short is finished by the next.
 *
 * Compile, plan, write are three steps with values between them: staging a changed index goes between the last two.
 */
import type { Machines } from '../../ddocs/machine.ts'
import type { Couch } from '../couch/client.ts'
import type { Doc } from '../couch/documents.ts'
import type { Target } from './bundle.ts'
import { compileDdocs } from './compile.ts'
import { detectEngine } from './detect.ts'
import { DeployError } from './errors.ts'
import { explainFailure } from './explain-failure.ts'
import { planDeploy, type Plan } from './plan.ts'
import type { DatabaseReport, DdocResult, DeployReport } from './report.ts'
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
  const { couch, deployments, dryRun = false, createDatabases = false, signal } = options
  const done: DatabaseReport[] = []
  try {
    const engine = await detectEngine(couch, signal)
    const target = options.target ?? engine.target
    const compiled: { database: string; ddocs: Doc[] }[] = []
    for (const deployment of deployments) {
      compiled.push({ database: deployment.database, ddocs: await compileDdocs({ ...deployment, target }) })
    }
    const plans: Plan[] = []
    for (const { database, ddocs } of compiled) {
      plans.push(await planDeploy({ database: couch.db(database), ddocs, signal }))
    }
    if (!createDatabases) refuseMissing(plans, couch.url)
    for (const plan of plans) done.push(dryRun ? foresee(plan) : await carryOut(plan, signal))
    return { url: couch.url, engine: engine.name, target, databases: done }
  } catch (thrown) {
    throw explainFailure(thrown, couch.url, done)
  }
}

function refuseMissing(plans: readonly Plan[], url: string): void {
  const missing = plans.filter(({ exists }) => !exists).map(({ database }) => database.name)
  if (missing.length === 0) return
  throw new DeployError('no_database', [`${url} has no database ${missing.join(', ')}: create it first`])
}

function foresee({ database, exists, steps }: Plan): DatabaseReport {
  const ddocs = steps.map((step): DdocResult => {
    if (step.kind === 'keep') return { kind: 'unchanged', id: step.ddoc._id }
    return { kind: `would-${step.kind}`, id: step.ddoc._id, changes: step.changes }
  })
  return { database: database.name, result: exists ? 'there' : 'would-create', ddocs }
}

async function carryOut({ database, exists, steps }: Plan, signal: AbortSignal | undefined): Promise<DatabaseReport> {
  const created = !exists && (await database.create({ signal }))
  const ddocs: DdocResult[] = []
  for (const step of steps) ddocs.push(await writeStep(database, step, signal))
  return { database: database.name, result: created ? 'created' : 'there', ddocs }
}
