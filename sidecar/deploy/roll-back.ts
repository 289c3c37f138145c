import type { Couch } from '../couch/client.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { DeployError } from './deploy-errors.ts'
import { explainFailure } from './explain-failure.ts'
import { isEverybodys, refuseFailures } from './failures.ts'
import { findMissing } from './missing.ts'
import { planDeploy, type Plan, type Wanted } from './plan.ts'
import type { DatabaseReport, DdocResult } from './report.ts'
import { bring } from './staging/bring.ts'
import { withHold, type Hold } from './staging/hold.ts'
import { surroundingsFrom, type Surroundings } from './staging/surroundings.ts'
import { isForeign, readRecord } from './staging/record.ts'

export interface RollBackOptions extends Partial<Surroundings> {
  readonly couch: Couch
  readonly databases: readonly string[]
}

/**
 * Reverts unfinished deploys: it removes their staged copies. If the swap had begun, it also restores the previous
 * design documents. It does so like a deploy, so that no query waits. It does not revert a complete deploy: deploy the
 * previous version instead. Throws `DeployError`.
 */
export async function rollBack({ couch, databases, ...given }: RollBackOptions): Promise<readonly DatabaseReport[]> {
  const surroundings = surroundingsFrom(given)
  const reports: DatabaseReport[] = []
  for (const name of databases) {
    const report = await rollBackOne(couch, couch.db(name), surroundings)
    reports.push(report)
    if (report.failure && (await isEverybodys(report.failure, couch))) break
  }
  refuseFailures(reports, databases)
  return reports
}

async function rollBackOne(couch: Couch, database: Database, surroundings: Surroundings): Promise<DatabaseReport> {
  const { signal } = surroundings
  const results: DdocResult[] = []
  try {
    if ((await findMissing(couch, [database.name], signal)).length > 0) {
      throw new DeployError('no_database', [`${couch.url} has no database ${database.name}`])
    }
    if (!(await readRecord(database, { signal }))) return { database: database.name, result: 'complete', ddocs: [] }
    await withHold(database, [], surroundings, async (hold) => {
      await bring({ ...surroundings, couch, hold, results, plan: await planBack(database, hold, results, signal) })
    })
    return { database: database.name, result: 'rolled-back', ddocs: results }
  } catch (thrown) {
    const failure = explainFailure(thrown, couch.url, [])
    if (!(failure instanceof DeployError)) throw failure
    return { database: database.name, result: 'there', ddocs: results, failure }
  }
}

/** Plans a return to the state before the swap; empty if no swap had begun. Later changes by others stay. */
async function planBack(
  database: Database,
  { record }: Hold,
  results: DdocResult[],
  signal: AbortSignal | undefined,
): Promise<Plan> {
  const ddocs: Wanted[] = []
  const obsolete: StoredDoc[] = []
  for (const [id, before] of Object.entries(record.previous)) {
    const current = await database.find(id, { attachments: true }, { signal })
    if (current && isForeign(record, current)) results.push({ kind: 'left', id })
    else if (before) ddocs.push({ compiled: before, removeMachines: true })
    else if (current) obsolete.push(current)
  }
  return { ...(await planDeploy({ database, exists: true, ddocs, signal })), obsolete }
}
