import { userDatabasesOf } from '../accounts/account-names.ts'
import { isAmong, isGlob } from '../core/glob.ts'
import type { Couch } from '../couch/client.ts'
import { listDatabases } from '../couch/survey.ts'

/** Names and globs of all served databases: the control database, those of the settings, the users' databases. */
export const patternsOf = ({
  controlDb,
  databases,
}: {
  readonly controlDb: string
  readonly databases: readonly string[]
}) => [...new Set([controlDb, ...databases, userDatabasesOf(controlDb)])]

/** The name or glob that serves this database; its own name wins. The database must match one. */
export const patternOf = (name: string, patterns: readonly string[]): string =>
  patterns.includes(name) ? name : patterns.find((pattern) => isAmong(name, [pattern]))!

/** The databases of `resolveDatabases`, grouped by the name or glob that serves them. Throws `CouchError`. */
export async function groupDatabases(couch: Couch, patterns: readonly string[], signal: AbortSignal) {
  const groups = new Map<string, string[]>()
  for (const name of await resolveDatabases(couch, patterns, signal)) {
    const pattern = patternOf(name, patterns)
    const group = groups.get(pattern)
    if (group) group.push(name)
    else groups.set(pattern, [name])
  }
  return groups
}

/** The databases that match now: names unchecked, globs by the server's list. Throws `CouchError`. */
export async function resolveDatabases(couch: Couch, patterns: readonly string[], signal: AbortSignal) {
  const names = new Set(patterns.filter((pattern) => !isGlob(pattern)))
  if (patterns.some(isGlob)) {
    const isWanted = (name: string) => isAmong(name, patterns)
    for (const name of await listDatabases(couch, isWanted, signal)) names.add(name)
  }
  return names
}
