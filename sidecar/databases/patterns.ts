import { userDatabasesOf } from '../accounts/account-names.ts'
import { isAmong, isGlob } from '../core/glob.ts'
import type { Couch } from '../couch/client.ts'
import { listDatabases } from '../couch/survey.ts'

/** Names and globs of all that a sidecar looks after: those of the settings, the control database, the users'. */
export const patternsOf = ({
  controlDb,
  databases,
}: {
  readonly controlDb: string
  readonly databases: readonly string[]
}) => [...new Set([controlDb, ...databases, userDatabasesOf(controlDb)])]

/** By which of them a database is served that is: its own name first. */
export const patternOf = (name: string, patterns: readonly string[]): string =>
  patterns.includes(name) ? name : patterns.find((pattern) => isAmong(name, [pattern]))!

/** Databases that are there now, by the first name or glob that stands for them. */
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

/** The databases that names and globs stand for now: names as they are, globs by what the server has. */
export async function resolveDatabases(couch: Couch, patterns: readonly string[], signal: AbortSignal) {
  const names = new Set(patterns.filter((pattern) => !isGlob(pattern)))
  if (patterns.some(isGlob)) {
    const isWanted = (name: string) => isAmong(name, patterns)
    for (const name of await listDatabases(couch, isWanted, signal)) names.add(name)
  }
  return names
}
