import type { Couch } from './couch/client.ts'

const isGlob = (pattern: string) => pattern.includes('*')

/** `*` stands for any number of any characters, slashes too. */
const toRegExp = (glob: string) => new RegExp(`^${glob.replace(/[.+^${}()|[\]\\?]/g, '\\$&').replaceAll('*', '.*')}$`)

/** Whether a name is among those that names and globs stand for. Names that begin with `_` are for names alone. */
export const isServed = (name: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) =>
    isGlob(pattern) ? !name.startsWith('_') && toRegExp(pattern).test(name) : pattern === name,
  )

/** By which of them a database is served that is: its own name first. */
export const patternOf = (name: string, patterns: readonly string[]): string =>
  patterns.includes(name) ? name : patterns.find((pattern) => isServed(name, [pattern]))!

/** The databases that names and globs stand for now: names as they are, globs by what the server has. */
export async function resolveDatabases(couch: Couch, patterns: readonly string[], signal: AbortSignal) {
  const names = new Set(patterns.filter((pattern) => !isGlob(pattern)))
  if (patterns.some(isGlob)) {
    const all = await couch.request<string[]>({ path: '_all_dbs', signal })
    for (const name of all) if (isServed(name, patterns)) names.add(name)
  }
  return names
}
