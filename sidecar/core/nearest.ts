/** The candidate with the fewest edits (insert, delete, replace a letter) from `word`, if at most `limit`. */
export function nearest(word: string, candidates: readonly string[], limit: number): string | undefined {
  const [best] = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(word, candidate) }))
    .filter(({ edits }) => edits <= limit)
    .sort((a, b) => a.edits - b.edits)
  return best?.candidate
}

/** Levenshtein distance, computed one row of the table at a time. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}

/** Suffix for an error about `word`: names the candidate that was probably meant, or is empty. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const suggestion = nearest(word, candidates, Math.min(2, Math.floor(word.length / 2)))
  return suggestion === undefined || suggestion === word ? '' : ` (did you mean ${suggestion}?)`
}
