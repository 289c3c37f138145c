/**
 * Deploys design documents to databases. Before the first write, it compiles and tries all functions, and finds all
 * databases. It does not write equal documents, so the next run finishes an interrupted one. A new index is built
 * beside the current one, which answers queries meanwhile (`staging/`).
 */
import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { server } from '../couch/schemas.ts'
import type { Target } from './bundle.ts'
import { createCompiler, type Compiler, type Template } from './compiler.ts'
import { deployDatabase } from './deploy-database.ts'
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
  /** Reports what would change, and writes nothing. */
  readonly dryRun?: boolean | undefined
  /** Removes machines that a database declares and its deployment does not; by default they stay. */
  readonly removeMachines?: boolean | undefined
  /** Removes design documents that the folder does not have (see `findObsolete`). */
  readonly prune?: boolean | undefined
  /** Creates missing databases. */
  readonly createDatabases?: boolean | undefined
  /** Refuses if the disk is known to lack space for a second index. Default true. */
  readonly checkDisk?: boolean | undefined
  /** Default: the target of the server's engine. */
  readonly target?: Target | undefined
  /** Share one between deploys to compile common templates only once. Default: a new compiler. */
  readonly compiler?: Compiler | undefined
}

/**
 * Compiles, compares and writes. A failed database does not stop the others; its error is thrown at the end. An
 * unreachable server or the signal stops the deploy. Throws `DeployError` with one clear message, and the report so
 * far. `ddocs_broken` and `no_database` mean that nothing was written.
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

/** The JavaScript engine that runs the functions of design documents. */
interface Engine {
  /** `quickjs`, `spidermonkey 102`, or `unknown`. */
  readonly name: string
  readonly target: Target
}

const UNKNOWN: Engine = { name: 'unknown', target: 'es2017' }

/** Erlang's name for a node without a configured name. */
const NAMELESS = 'nonode@nohost'

/**
 * Detects the server's engine. A server that does not report it counts as ES2017: PouchDB, or a CouchDB that requires
 * admin rights. Throws `CouchError` if no answer comes.
 */
export async function detectEngine(couch: Couch, signal?: AbortSignal): Promise<Engine> {
  try {
    const { features = [] } = await couch.request({ signal }, server)
    if (features.includes('quickjs')) return { name: 'quickjs', target: 'es2017' }
    const { name: node } = await couch.request({ path: '_node/_local', signal }, nodeOf)
    if (node === NAMELESS) return UNKNOWN // the next request makes a nameless CouchDB 3.5 call clouseau and crash
    const { javascript_engine: engine } = await couch.request({ path: '_node/_local/_versions', signal }, versions)
    return engine?.name ? engineFrom(engine.name, engine.version) : UNKNOWN
  } catch (thrown) {
    if (isCouchError(thrown) && thrown.status !== undefined) return UNKNOWN
    throw thrown
  }
}

const nodeOf = z.object({ name: z.string().optional() })
const versions = z.object({
  javascript_engine: z.object({ name: z.string().optional(), version: z.string().optional() }).optional(),
})

function engineFrom(name: string, version: string | undefined): Engine {
  const target = name === 'spidermonkey' && version?.startsWith('1.') ? 'es5' : 'es2017'
  return { name: version === undefined ? name : `${name} ${version}`, target }
}
