import type { Couch } from '../couch/client.ts'
import { CouchError, isCouchError } from '../couch/couch-errors.ts'
import { DeployError } from './deploy-errors.ts'

/** Those that are not there. Throws `CouchError` where that cannot be found out, but for the trouble of a single one. */
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

/** It meets its trouble again when it is its turn, and then the others go on. */
const ofOne: readonly CouchError['code'][] = ['server', 'forbidden', 'bad_request']

export function refuseMissing(missing: readonly string[], url: string): void {
  if (missing.length === 0) return
  throw new DeployError('no_database', [`${url} has no database ${missing.join(', ')}: create it first`])
}
