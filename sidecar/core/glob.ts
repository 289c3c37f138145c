/** Whether this stands for more than the name that it is. */
export const isGlob = (pattern: string): boolean => pattern.includes('*')

/** `*` stands for any number of any characters, slashes too. */
const toRegExp = (glob: string) => new RegExp(`^${glob.replace(/[.+^${}()|[\]\\?]/g, '\\$&').replaceAll('*', '.*')}$`)

/** Whether a name is among those that names and globs stand for. Names that begin with `_` are for names alone. */
export const isAmong = (name: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) =>
    isGlob(pattern) ? !name.startsWith('_') && toRegExp(pattern).test(name) : pattern === name,
  )
