import type { Couch } from './couch/client.ts'

const isGlob = (pattern: string) => pattern.includes('*')

/** `*` stands for any number of any characters, slashes too. */
const toRegExp = (glob: string) => new RegExp(`^${glob.replace(/[.+^${}()|[\]\\?]/g, '\\$&').replaceAll('*', '.*')}$`)

/** The databases that names and globs stand for now: names as they are, globs by what the server has. */
export async function resolveDatabases(couch: Couch, patterns: readonly string[], signal: AbortSignal) {
  const names = new Set(patterns.filter((pattern) => !isGlob(pattern)))
  const globs = patterns.filter(isGlob).map(toRegExp)
  if (globs.length > 0) {
    const all = await couch.request<string[]>({ path: '_all_dbs', signal })
    for (const name of all) if (!name.startsWith('_') && globs.some((glob) => glob.test(name))) names.add(name)
  }
  return names
}
