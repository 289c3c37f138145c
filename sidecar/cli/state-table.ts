import type { StateCount } from '../docstate/operator/count-documents.ts'
import { oneLine } from '../core/visible.ts'

/** Document counts of one database. */
export interface Counted {
  readonly database: string
  /** Undefined if no design document exists to count by. */
  readonly counts: readonly StateCount[] | undefined
}

export const NOT_DEPLOYED = 'not deployed yet: run "couchdb-sidecar deploy", or start the sidecar'

const notes: Readonly<Record<string, string>> = {
  parked: 'a worker was lost: check the effect, then run "couchdb-sidecar retry"',
  retry: 'an attempt failed, the next one is scheduled',
  failed: 'for good: "couchdb-sidecar list" shows the reason',
}
/** Maximum databases named for documents that need attention. */
const NAMED = 3

/** Formats the documents of one database, by type and state. */
export function tableOf({ database, counts }: Counted): string {
  if (!counts) return `${database}\n  ${NOT_DEPLOYED}`
  if (counts.length === 0) return `${database}\n  no documents with a type and a state`
  return [database, ...linesOf(counts.map((one) => ({ ...one, where: '' })))].join('\n')
}

/** Formats the documents of many databases together. A row that needs attention names its databases. */
export function tableOfMany(pattern: string, counted: readonly Counted[]): string {
  const sums = new Map<string, StateCount & { readonly databases: readonly string[] }>()
  for (const { database, counts = [] } of counted) {
    for (const one of counts) {
      const key = JSON.stringify([one.type, one.state, one.status])
      const before = sums.get(key) ?? { ...one, count: 0, databases: [] }
      sums.set(key, { ...before, count: before.count + one.count, databases: [...before.databases, database] })
    }
  }
  const missing = counted.filter(({ counts }) => !counts).length
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => ({ ...sum, where: whereOf(sum) }))
  return [
    `${pattern} (${counted.length} databases)`,
    ...(rows.length > 0 ? linesOf(rows) : ['  no documents with a type and a state']),
    ...(missing > 0 ? [`  ${missing} of them ${missing === 1 ? 'is' : 'are'} ${NOT_DEPLOYED}`] : []),
  ].join('\n')
}

function whereOf({ state, status, databases }: StateCount & { readonly databases: readonly string[] }): string {
  if (notes[status] === undefined && (state !== 'error' || status === 'discarded')) return ''
  const more = databases.length - NAMED
  return `in ${databases.slice(0, NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function linesOf(counts: readonly (StateCount & { readonly where: string })[]): string[] {
  const rows = counts.map(({ type, state, status, count, where }) => {
    const standing = status === 'ready' ? '' : `${status}${notes[status] ? ` (${notes[status]})` : ''}`
    return [type, state, String(count), [standing, where].filter(Boolean).join(', ')].map(oneLine)
  })
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map(([type, state, count, note]) =>
    `  ${type!.padEnd(widths[0]!)}  ${state!.padEnd(widths[1]!)}  ${count!.padStart(widths[2]!)}  ${note}`.trimEnd(),
  )
}
