import type { StuckGroup } from '../databases/stuck.ts'
import { oneLine } from '../core/visible.ts'

/** Formats the groups as lines. */
export function stuckLines(groups: readonly StuckGroup[]): string[] {
  if (groups.length === 0) return ['no document is stuck']
  return groups.flatMap(({ databases, type, state, status, count, since, code, why, next, example }) => {
    const reason = [code, why].filter(Boolean).join(': ')
    const old = since === undefined ? '' : `, oldest since ${since}`
    const such =
      example === undefined
        ? ''
        : `, such as ${example.id}${example.database === databases ? '' : ` in ${example.database}`}`
    return [
      oneLine(`  ${databases}  ${type}/${state}  ${status}  ${count}${old}${such}`),
      oneLine(`    why: ${reason}`),
      oneLine(`    next: ${next}`),
    ]
  })
}
