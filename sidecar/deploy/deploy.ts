/**
 * Brings design documents into databases. Everything is compiled and tried, and every database is looked for, before
 * the first write; what is equal is not written, so a run that was cut short is finished by the next. Where an index
 * would have to be built anew, that is done beside the one that answers (`staging/`).
 */
import type { Couch } from '../couch/client.ts'
import type { Target } from './bundle.ts'
import { createCompiler, type Compiler, type Template } from './compiler.ts'
import { deployDatabase } from './deploy-database.ts'
import { detectEngine } from './detect.ts'
import { explainFailure } from './explain-failure.ts'
import { isEverybodys, refuseFailures } from './failures.ts'
import { findMissing, refuseMissing } from './missing.ts'
import type { DatabaseReport, DeployReport } from './report.ts'
import { surroundingsFrom, type Surroundings } from './staging/surroundings.ts'

/** The design documents of one database. */
export interface Deployment {
  readonly database: string
  readonly templates: readonly Template[]
}

export interface DeployOptions extends Partial<Surroundings> {
  readonly couch: Couch
  readonly deployments: readonly Deployment[]
  /** Only say what would be done. */
  readonly dryRun?: boolean | undefined
  /** Take out machines that a database declares and its deployment does not; by default they stay. */
  readonly removeMachines?: boolean | undefined
  /** Remove design documents that the folder does not have (see `findObsolete`). */
  readonly prune?: boolean | undefined
  /** Make a database that is not there. */
  readonly createDatabases?: boolean | undefined
  /** Refuse where there is known to be no room for a second index. Default true. */
  readonly checkDisk?: boolean | undefined
  /** Default: what the server's engine needs. */
  readonly target?: Target | undefined
  /** Of several deploys, so that what they have in common is compiled once. Default: one of its own. */
  readonly compiler?: Compiler | undefined
}

/**
 * Compiles, compares and writes. A database that fails does not stop the others, but throws at the end; a server that is
 * away does, and the signal. Throws `DeployError` with one clear message, and the report so far; after `ddocs_broken`
 * and `no_database` nothing has been written.
 */
export async function deployDdocs(options: DeployOptions): Promise<DeployReport> {
  const { couch, deployments, dryRun = false, createDatabases = false, removeMachines = false, prune } = options
  const { checkDisk = true, compiler = createCompiler(), signal } = options
  const surroundings = surroundingsFrom(options)
  const engine = await detectEngine(couch, signal).catch(refuse(couch))
  const target = options.target ?? engine.target
  for (const { templates } of deployments) await compiler(templates, target)
  const missing = await findMissing(couch, namesOf(deployments), signal).catch(refuse(couch))
  if (!createDatabases) refuseMissing(missing, couch.url)

  const databases: DatabaseReport[] = []
  for (const [index, { database, templates }] of deployments.entries()) {
    if (deployments.length > 1) {
      surroundings.onProgress({ kind: 'database', database, number: index + 1, of: deployments.length })
    }
    const ddocs = (await compiler(templates, target)).map((compiled) => ({ compiled, removeMachines }))
    const job = { ...surroundings, couch, database: couch.db(database), exists: !missing.includes(database) }
    const report = await deployDatabase({ ...job, ddocs, prune, dryRun, checkDisk })
    databases.push(report)
    if (report.failure && (await isEverybodys(report.failure, couch))) break
  }
  refuseFailures(databases, namesOf(deployments))
  return { url: couch.url, engine: engine.name, target, databases }
}

const namesOf = (deployments: readonly Deployment[]) => deployments.map(({ database }) => database)

const refuse = (couch: Couch) => (thrown: unknown) => {
  throw explainFailure(thrown, couch.url, [])
}
