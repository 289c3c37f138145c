/** The candidate with the fewest edits from `word`, if at most `limit`: letters inserted, deleted, replaced, swapped. */
export function nearest(word: string, candidates: readonly string[], limit: number): string | undefined {
  const [best] = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(word, candidate) }))
    .filter(({ edits }) => edits <= limit)
    .sort((a, b) => a.edits - b.edits)
  return best?.candidate
}

/** Edit distance, computed one row of the table at a time. Two swapped neighbours count as one edit. */
function editsBetween(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const areSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = areSwapped ? before[j - 2]! + 1 : Infinity
      next.push(Math.min(replaced, swapped, row[j]! + 1, next[j - 1]! + 1))
    }
    before = row
    row = next
  }
  return row[b.length]!
}

/** Suffix for an error about `word`: names the candidate that was probably meant, or is empty. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const suggestion = nearest(word, candidates, Math.min(2, Math.floor(word.length / 2)))
  return suggestion === undefined || suggestion === word ? '' : ` (did you mean ${suggestion}?)`
}
