import type { Change } from './compare.ts'
import type { DatabaseReport, DdocResult, DeployReport } from './report.ts'

/** The report as lines for a terminal: what was done for each design document, and what differed. */
export function formatReport({ url, engine, target, databases }: DeployReport): string {
  return [`${url} (engine ${engine}, ${target})`, ...databases.flatMap(formatDatabase)].join('\n')
}

function formatDatabase({ database, result, ddocs }: DatabaseReport): string[] {
  const note = { there: '', created: ' (created)', 'would-create': ' (would be created)' }[result]
  return [`${database}${note}`, ...ddocs.flatMap(formatDdoc)]
}

const words: Readonly<Record<DdocResult['kind'], string>> = {
  unchanged: 'unchanged',
  created: 'created',
  updated: 'updated',
  'would-create': 'would be created',
  'would-update': 'would be updated',
}

function formatDdoc(result: DdocResult): string[] {
  const kept = (result.kept ?? []).map(
    (type) =>
      `    = machines.${type} stays: no handlers declare it here (--remove-machines takes it out, and its guard)`,
  )
  return [`  ${result.id} ${words[result.kind]}`, ...kept, ...formatChanges(result)]
}

function formatChanges(result: DdocResult): string[] {
  switch (result.kind) {
    case 'unchanged':
      return []
    case 'created':
    case 'would-create':
      return result.changes.map(({ field }) => `    + ${field}`)
    case 'updated':
    case 'would-update':
      return result.changes.flatMap(formatChange)
    default:
      return result satisfies never
  }
}

function formatChange(change: Change): string[] {
  switch (change.kind) {
    case 'added':
      return [`    + ${change.field}`, ...marked('+', linesOf(change.after))]
    case 'removed':
      return [`    - ${change.field}`, ...marked('-', linesOf(change.before))]
    case 'changed':
      return [`    ~ ${change.field}`, ...differing(linesOf(change.before), linesOf(change.after))]
    default:
      return change satisfies never
  }
}

const LINES = 20

const marked = (mark: '+' | '-', lines: readonly string[]): string[] => {
  const shown = lines.slice(0, LINES).map((line) => `      ${mark} ${line}`)
  return lines.length > LINES ? [...shown, `      ${mark} … ${lines.length - LINES} more lines`] : shown
}

/** The lines between the first and the last that differ. */
function differing(before: readonly string[], after: readonly string[]): string[] {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  const middle = (lines: readonly string[]) => lines.slice(head, lines.length - tail)
  return [...marked('-', middle(before)), ...marked('+', middle(after))]
}

const linesOf = (value: unknown): string[] => (typeof value === 'string' ? value : JSON.stringify(value)).split('\n')
