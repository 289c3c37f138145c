import type { Measured } from '../indexes/measure.ts'
import type { Note } from '../indexes/notes.ts'
import type { IndexRow } from '../indexes/rows.ts'
import { oneLine } from '../core/visible.ts'

/** A stale index. */
interface Behind {
  readonly name: string
  readonly changes: number | null
  readonly seconds?: number
  readonly building: boolean
  readonly reason?: string | undefined
}

/**
 * Formats the state of indexes: the new measurements, and the notes of workers, also about other databases.
 *
 * @param measured undefined if the server does not report it
 */
export function indexLines(measured: readonly Measured[] | undefined, notes: readonly Note[]): string[] {
  const { own, others } = behindOf(measured, notes)
  return [summary(measured, own, notes), ...[...own, ...others].map(indexLine).map(oneLine)]
}

/** Stale indexes: of these databases, and of others in the notes of workers. */
export function behindOf(measured: readonly Measured[] | undefined, notes: readonly Note[]) {
  const noted = new Map(notes.flatMap(({ behind }) => behind.map((row) => [nameOf(row), row] as const)))
  const own = (measured ?? [])
    .filter(({ lag }) => lag > 0)
    .map((index): Behind => {
      const name = nameOf({
        db_name: index.database,
        ddoc: index.ddoc,
        index: index.kind === 'view' ? null : index.name,
      })
      const row = noted.get(name)
      noted.delete(name)
      const fromNote = row && fromRow(row)
      const changes = index.trouble === undefined ? index.lag : null
      return { ...fromNote, name, changes, building: index.isRunning, reason: fromNote?.reason ?? index.trouble }
    })
  const names = new Set((measured ?? []).map(({ database }) => database))
  const others = [...noted.values()].filter(({ db_name }) => !names.has(db_name)).map(fromRow)
  return { own, others }
}

function summary(measured: readonly Measured[] | undefined, behind: readonly Behind[], notes: readonly Note[]): string {
  if (!measured) return 'the server does not report the state of its indexes'
  const kept = notes.reduce((sum, { indexes }) => sum + indexes, 0)
  const late = notes.reduce((sum, { behind }) => sum + behind.length, 0)
  const all = kept > 0 ? `; workers build ${kept} on the whole server, ${late} of them stale or failing` : ''
  if (measured.length === 0) return `no indexes in these databases${all}`
  return `${measured.length - behind.length} of ${measured.length} in these databases are up to date${all}`
}

const fromRow = (row: IndexRow): Behind => ({
  ...{ name: nameOf(row), changes: row.lag_changes, seconds: row.lag_seconds, building: row.building },
  reason: row.error?.reason,
})

const nameOf = ({ db_name, ddoc, index }: Pick<IndexRow, 'db_name' | 'ddoc' | 'index'>) =>
  [db_name, ddoc, ...(index === null ? [] : [index])].join('  ')

function indexLine({ name, changes, seconds, building, reason }: Behind): string {
  const far = changes === null ? 'stale' : `${changes} ${changes === 1 ? 'change' : 'changes'} behind`
  const long = seconds === undefined ? '' : ` for ${Math.round(seconds)} s`
  return `${name}  ${far}${long}${building ? ', being built' : ''}${reason === undefined ? '' : `: ${reason}`}`
}
