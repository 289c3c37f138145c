import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { DeployError } from './deploy-errors.ts'
import type { DatabaseReport } from './report.ts'

const LOOK_MS = 5000

/** Whether the next database would have the same trouble. A server may cut off one database's answers and give others. */
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
 * Throws what went wrong, with the reports of all: of one database its own error, of several one that lists them.
 *
 * @param databases all that were to be done
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
          `${failed.length} of ${databases.length} databases failed, another run does the rest:`,
          ...failed.map(({ database, failure }) => `${database}: ${failure.faults.join('; ')}`),
          ...rest,
        ])
  error.reports = reports
  throw error
}
