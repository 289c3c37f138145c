/** Whether this stands for more than the name that it is. */
export const isGlob = (pattern: string): boolean => pattern.includes('*')

/**
 * Whether a name is among those that names and globs stand for. `*` stands for any number of any characters, slashes
 * too. Names that begin with `_` are for names alone.
 */
export const isAmong = (name: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => (isGlob(pattern) ? !name.startsWith('_') && fits(name, pattern) : pattern === name))

/**
 * What stands between two stars is looked for once, as far to the left as it can be: no other place could let more of
 * the glob fit. A regular expression would try them all, which takes minutes for six stars.
 */
function fits(name: string, glob: string): boolean {
  const between = glob.split('*')
  const [head, tail] = [between.shift()!, between.pop()!]
  const end = name.length - tail.length
  if (end < head.length || !name.startsWith(head) || !name.endsWith(tail)) return false
  let from = head.length
  for (const text of between) {
    const at = name.indexOf(text, from)
    if (at === -1 || at + text.length > end) return false
    from = at + text.length
  }
  return true
}
