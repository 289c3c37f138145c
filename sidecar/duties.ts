import type { Config } from './config.ts'
import { IN_CONFLICT, placesOf, typesOf, type DispatchTable } from './docstate/assess.ts'
import { isServed } from './databases/roster.ts'
import type { Tables } from './tables.ts'
import type { Member, WorkerOptions } from './workers/documents.ts'
import type { Place } from './workers/sharing.ts'

/** The role of sidecars that share one control database. */
export const ROLE = 'sidecar'

/** What a sidecar tells the others of itself: what it handles where. `type/state` each; `types` with conflicts. */
export function dutiesOf(config: Places, tables: Tables): WorkerOptions {
  const { controlDb, databases, globalChangesDb } = config
  return {
    control: { database: controlDb, handlers: namesOf(tables.control), types: typesOf(tables.control) },
    databases: { names: [...databases], handlers: namesOf(tables.docstate), types: typesOf(tables.docstate) },
    global_changes: globalChangesDb,
    indexes: true,
  }
}

type Places = Pick<Config, 'controlDb' | 'databases' | 'globalChangesDb'>

/** Whether a sidecar writes database events into this database. */
export const writesEvents =
  (globalChangesDb: string) =>
  ({ options }: Member): boolean =>
    options.global_changes === globalChangesDb

/** Whether a sidecar builds indexes. */
export const keepsIndexes = ({ options }: Member): boolean => options.indexes === true

/** Whether a sidecar handles what waits in this place. What others write of themselves may be anything. */
export function hasDuty({ options }: Member, database: string, { type, state }: Place): boolean {
  const { control, databases } = options as {
    control?: { database?: unknown } & Duties
    databases?: { names?: unknown } & Duties
  }
  const includes = ({ handlers, types }: Duties) =>
    state === IN_CONFLICT ? stringsIn(types).includes(type) : stringsIn(handlers).includes(nameOf(type, state))
  if (control?.database === database) return includes(control)
  return !!databases && isServed(database, stringsIn(databases.names)) && includes(databases)
}

interface Duties {
  readonly handlers?: unknown
  readonly types?: unknown
}

const nameOf = (type: string, state: string) => `${type}/${state}`
const namesOf = (table: DispatchTable) => placesOf(table).map(({ type, state }) => nameOf(type, state))
const stringsIn = (field: unknown): readonly string[] =>
  Array.isArray(field) ? field.filter((one) => typeof one === 'string') : []
