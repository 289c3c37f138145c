import type { Config } from '../config.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { patternsOf, resolveDatabases } from '../databases/patterns.ts'
import { SidecarError } from '../core/errors.ts'
import { isGlob } from '../core/glob.ts'
import type { CountedDatabase } from '../databases/stuck.ts'
import { countDocuments, type StateCount } from '../docstate/operator/count-documents.ts'
import { NOT_DEPLOYED } from './state-table.ts'
import type { Terminal } from './terminal.ts'
import { whileBuilding } from './while-building.ts'

/** Yields the databases of a name or glob, or of all settings, sorted by name. Counts each when its turn comes. */
export async function* eachDatabase(
  couch: Couch,
  config: Config,
  db: string | undefined,
  terminal: Pick<Terminal, 'note' | 'redraw' | 'signal'>,
): AsyncGenerator<CountedDatabase> {
  const { signal } = terminal
  const names = [...(await resolveDatabases(couch, db === undefined ? patternsOf(config) : [db], signal))].sort()
  for (const [at, name] of names.entries()) {
    if (names.length > 1) terminal.redraw?.(`${at + 1} of ${names.length} databases: ${name}`)
    try {
      const counting = countDocuments(couch.db(name), signal)
      const counted = await whileBuilding(counting, { couch, database: name, terminal })
      yield { name, counted }
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown
      if (db !== undefined && !isGlob(db)) throw await missing(couch, db, signal)
      yield { name, counted: undefined }
    }
  }
  terminal.redraw?.('')
}

/** Explains why a named database cannot be counted. */
async function missing(couch: Couch, name: string, signal: AbortSignal): Promise<SidecarError> {
  const exists = await couch
    .db(name)
    .info({ signal })
    .then(
      () => true,
      () => false,
    )
  const reason = exists ? `the database ${name} is ${NOT_DEPLOYED}` : `there is no database ${name}`
  return new SidecarError('not-found', reason)
}

export const sumOf = (counts: readonly StateCount[]): number => counts.reduce((sum, { count }) => sum + count, 0)
