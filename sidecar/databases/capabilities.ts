import type { Config } from './config.ts'
import { IN_CONFLICT, typesAndStatesOf, typesOf, type DispatchTable } from './docstate/classify.ts'
import { isAmong } from './core/glob.ts'
import { userDatabasesOf } from './accounts/names.ts'
import type { Tables } from './tables.ts'
import type { Member, WorkerOptions } from './workers/documents.ts'
import type { TypeAndState } from './workers/partitioning.ts'

/** The role of sidecars that share one control database. */
export const ROLE = 'sidecar'

/** What a sidecar tells the others of itself: what it handles where. `type/state` each; `types` with conflicts. */
export function capabilitiesOf(config: Places, tables: Omit<Tables, 'of'>): WorkerOptions {
  const { controlDb, databases, globalChangesDb } = config
  return {
    control: { database: controlDb, ...capabilitiesIn(tables.control) },
    users: { names: [userDatabasesOf(controlDb)], ...capabilitiesIn(tables.user) },
    databases: { names: [...databases], ...capabilitiesIn(tables.docstate) },
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

/** Whether a sidecar keeps the accounts of this control database. */
export const managesAccounts =
  (controlDb: string) =>
  ({ options }: Member): boolean =>
    (options.control as { database?: unknown } | undefined)?.database === controlDb

/** Whether a sidecar builds indexes. */
export const buildsIndexes = ({ options }: Member): boolean => options.indexes === true

/** Whether a sidecar handles what waits in this state. What others write of themselves may be anything. */
export function hasCapability({ options }: Member, database: string, { type, state }: TypeAndState): boolean {
  const { control, users, databases } = options as {
    control?: { database?: unknown } & Capabilities
    users?: Named
    databases?: Named
  }
  const includes = ({ handlers, types }: Capabilities) =>
    state === IN_CONFLICT ? stringsIn(types).includes(type) : stringsIn(handlers).includes(nameOf(type, state))
  if (control?.database === database) return includes(control)
  const isIn = ({ names }: Named) => isAmong(database, stringsIn(names))
  const named = users && isIn(users) ? users : databases && isIn(databases) ? databases : undefined
  return named !== undefined && includes(named)
}

interface Capabilities {
  readonly handlers?: unknown
  readonly types?: unknown
}

/** Names and globs of databases. */
interface Named extends Capabilities {
  readonly names?: unknown
}

const nameOf = (type: string, state: string) => `${type}/${state}`
const capabilitiesIn = (table: DispatchTable) => ({ handlers: namesOf(table), types: typesOf(table) })
const namesOf = (table: DispatchTable) => typesAndStatesOf(table).map(({ type, state }) => nameOf(type, state))
const stringsIn = (field: unknown): readonly string[] =>
  Array.isArray(field) ? field.filter((one) => typeof one === 'string') : []
