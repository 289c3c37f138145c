import type { Couch } from '../couch/client.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { DeployError } from './deploy-errors.ts'

/** Lists missing databases. Throws `CouchError` if a check fails, except for an error of one database among several. */
export async function findMissing(
  couch: Couch,
  databases: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const missing: string[] = []
  for (const name of databases) {
    try {
      await couch.db(name).info({ signal })
    } catch (thrown) {
      if (isCouchError(thrown, 'not_found')) missing.push(name)
      else if (!(thrown instanceof CouchError) || databases.length === 1 || !ofOne.includes(thrown.code)) throw thrown
    }
  }
  return missing
}

/** Errors of one database: its own deploy meets them again, and then the others go on. */
const ofOne: readonly CouchError['code'][] = ['server', 'forbidden', 'bad_request']

export function refuseMissing(missing: readonly string[], url: string): void {
  if (missing.length === 0) return
  throw new DeployError('no_database', [`${url} has no database ${missing.join(', ')}: create it first`])
}
