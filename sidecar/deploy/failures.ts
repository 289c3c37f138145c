import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { DeployError } from './deploy-errors.ts'
import type { DatabaseReport } from './report.ts'

const LOOK_MS = 5000

/** Whether the next database would fail in the same way. A server may cut off the answers of only one database. */
export async function isEverybodys({ code }: DeployError, couch: Couch): Promise<boolean> {
  if (code === 'stopped') return true
  if (code !== 'server_unreachable') return false
  try {
    await couch.request({ timeoutMs: LOOK_MS })
    return false
  } catch (thrown) {
    if (isCouchError(thrown)) return thrown.status === undefined
    throw thrown
  }
}

/**
 * Throws if any database failed, with all reports: the error of one database, or one error that lists several.
 *
 * @param databases all databases of the run
 */
export function refuseFailures(reports: readonly DatabaseReport[], databases: readonly string[]): void {
  const failed = reports.flatMap(({ database, failure }) => (failure ? [{ database, failure }] : []))
  if (failed.length === 0) return
  const unbegun = databases.slice(reports.length)
  const rest = unbegun.length > 0 ? [`not begun: ${unbegun.join(', ')}`] : []
  const [only, another] = failed
  const error =
    only && !another
      ? new DeployError(only.failure.code, [...only.failure.faults, ...rest], { cause: only.failure.cause })
      : new DeployError('several', [
          `${failed.length} of ${databases.length} databases failed, run the deploy again for the rest:`,
          ...failed.map(({ database, failure }) => `${database}: ${failure.faults.join('; ')}`),
          ...rest,
        ])
  error.reports = reports
  throw error
}
