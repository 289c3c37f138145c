/** Whether the pattern is a glob and not a plain name. */
export const isGlob = (pattern: string): boolean => pattern.includes('*')

/**
 * Whether a name matches one of the names and globs. `*` matches any number of any characters, slashes included. A glob
 * matches no name that begins with `_`.
 */
export const isAmong = (name: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => (isGlob(pattern) ? !name.startsWith('_') && fits(name, pattern) : pattern === name))

/**
 * Finds each text between two stars once, as far to the left as possible. No other position could let more of the glob
 * match. A regular expression would try all positions, which takes minutes for six stars.
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
