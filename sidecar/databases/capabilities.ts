import type { Config } from '../config.ts'
import { IN_CONFLICT, typesAndStatesOf, typesOf, type DispatchTable } from '../docstate/classify.ts'
import { isAmong } from '../core/glob.ts'
import { userDatabasesOf } from '../accounts/account-names.ts'
import type { HandlerTables } from './handler-tables.ts'
import type { Member, WorkerOptions } from '../workers/worker-documents.ts'
import type { TypeAndState } from '../workers/partitioning.ts'

/** Capabilities that a worker publishes: `type/state` of its handlers, and `types` whose conflicts it resolves. */
export function capabilitiesOf(
  { controlDb, databases }: Places,
  tables: Omit<HandlerTables, 'of' | 'most'>,
): WorkerOptions {
  return {
    control: { database: controlDb, ...capabilitiesIn(tables.control) },
    users: { names: [userDatabasesOf(controlDb)], ...capabilitiesIn(tables.user) },
    databases: { names: [...databases], ...capabilitiesIn(tables.docstate) },
  }
}

type Places = Pick<Config, 'controlDb' | 'databases'>

/** Whether a worker has a handler for this state in this database. Other programs may have written invalid options. */
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

/** Whether a worker has a handler for this state anywhere. */
export const hasCapabilityAnywhere = ({ options }: Member, { type, state }: TypeAndState): boolean =>
  handlersOf({ options } as Member).includes(nameOf(type, state))

/** All handlers of a worker, by `type/state`. */
export const handlersOf = ({ options }: Member): string[] =>
  Object.values(options as Record<string, Capabilities | null | undefined>).flatMap((place) => [
    ...stringsIn(place?.handlers),
  ])

/** The user's handlers of a worker, by `type/state`, without the sidecar's own. */
export const ownHandlersOf = ({ options }: Member): readonly string[] =>
  stringsIn((options as { databases?: Capabilities }).databases?.handlers)

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
