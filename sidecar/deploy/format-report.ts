import type { Change } from './compare.ts'
import type { DatabaseReport, DdocResult, DeployReport } from './report.ts'

/** Above this number of databases, unchanged ones are only counted. */
const MANY = 10

/** Formats the report for a terminal: the result and the differences of each design document. */
export const formatReport = ({ url, engine, target, databases }: DeployReport): string =>
  [`${url} (engine ${engine}, ${target})`, formatDatabases(databases)].join('\n')

/** Formats the result of each database. Several databases get a summary at the end. */
export function formatDatabases(databases: readonly DatabaseReport[]): string {
  const shown = databases.filter((report) => databases.length <= MANY || outcomeOf(report) !== 'unchanged')
  return [...shown.flatMap(formatDatabase), ...(databases.length > 1 ? [summaryOf(databases)] : [])].join('\n')
}

function formatDatabase({ database, result, ddocs, failure }: DatabaseReport): string[] {
  return [`${database}${failure ? ' failed' : notes[result]}`, ...ddocs.flatMap(formatDdoc)]
}

function summaryOf(databases: readonly DatabaseReport[]): string {
  const count = (outcome: ReturnType<typeof outcomeOf>) =>
    databases.filter((report) => outcomeOf(report) === outcome).length
  const counts = `${count('changed')} changed, ${count('unchanged')} unchanged, ${count('failed')} failed`
  return `${databases.length} databases: ${counts}`
}

function outcomeOf({ result, ddocs, failure }: DatabaseReport): 'failed' | 'unchanged' | 'changed' {
  if (failure) return 'failed'
  return (result === 'there' || result === 'complete') && ddocs.every(({ kind }) => kind === 'unchanged')
    ? 'unchanged'
    : 'changed'
}

const notes: Readonly<Record<DatabaseReport['result'], string>> = {
  there: '',
  created: ' (created)',
  'would-create': ' (would be created)',
  'rolled-back': ' rolled back',
  complete: ' has no unfinished deploy',
}

const words: Readonly<Record<DdocResult['kind'], string>> = {
  unchanged: 'unchanged',
  created: 'created',
  updated: 'updated',
  removed: 'removed',
  left: 'left as it is: another deploy has changed it since',
  'would-create': 'would be created',
  'would-update': 'would be updated',
  'would-remove': 'would be removed',
}

function formatDdoc(result: DdocResult): string[] {
  const kept = (result.kept ?? []).map(
    (type) => `    = machines.${type} stays: no handlers declare it here (--remove-machines removes it and its guard)`,
  )
  const staged = result.staged ? ', after its index is built' : ''
  return [`  ${result.id} ${words[result.kind]}${staged}`, ...kept, ...formatChanges(result)]
}

function formatChanges(result: DdocResult): string[] {
  switch (result.kind) {
    case 'unchanged':
    case 'removed':
    case 'left':
    case 'would-remove':
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

/** The lines from the first difference to the last. */
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
