import type { Config } from '../config.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/errors.ts'
import { patternsOf, resolveDatabases } from '../databases/patterns.ts'
import { isGlob } from '../core/glob.ts'
import { countsFor, type Filter } from '../docstate/operator/find.ts'
import { countStates, type StateCount } from '../docstate/operator/status.ts'
import type { Terminal } from './terminal.ts'
import { whileBuilding } from './while-building.ts'

export interface CountedDatabase {
  readonly name: string
  /** Those among which documents of the filter may be; undefined where its design document is not deployed. */
  readonly counts: readonly StateCount[] | undefined
}

/** The databases of a name or glob, or of all that the settings name, in their order, each counted when it is its turn. */
export async function* eachDatabase(
  couch: Couch,
  config: Config,
  { db, filter }: { readonly db: string | undefined; readonly filter: Filter },
  terminal: Pick<Terminal, 'note' | 'redraw' | 'signal'>,
): AsyncGenerator<CountedDatabase> {
  const { signal } = terminal
  const names = [...(await resolveDatabases(couch, db === undefined ? patternsOf(config) : [db], signal))].sort()
  for (const [at, name] of names.entries()) {
    if (names.length > 1) terminal.redraw?.(`${at + 1} of ${names.length} databases: ${name}`)
    try {
      const counting = countStates(couch.db(name), signal)
      const counts = await whileBuilding(counting, { couch, database: name, terminal })
      yield { name, counts: countsFor(counts, filter) }
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found') || (db !== undefined && !isGlob(db))) throw thrown
      yield { name, counts: undefined }
    }
  }
  terminal.redraw?.('')
}

export const sumOf = (counts: readonly StateCount[]): number => counts.reduce((sum, { count }) => sum + count, 0)
