import type { Machines } from '../../ddocs/machine.ts'
import { ConfigError } from '../core/errors.ts'
import { checkMachines, handlerFault } from './check-machines.ts'
import { createControl, type Control } from './control.ts'
import type { Resolver } from './conflicts/merge.ts'
import type { Deletion, Schedule } from './runs.ts'
import type { Registration } from './types.ts'

/** The default export of a handler module. */
export interface HandlersModule<M extends Machines = Machines> {
  readonly machines: M
  readonly register: (control: Control<M>) => void
}

/**
 * Creates a handler module, for `SIDECAR_HANDLERS`. With machines, an illegal next state does not compile, and CouchDB
 * refuses forged states. Without machines, any state may follow any other.
 *
 * @example
 * export default defineHandlers((control) => {
 *   control.safe('photo', 'uploaded', async (photo) => ({ ...photo, state: 'listed' }))
 * })
 */
export function defineHandlers(register: (control: Control) => void): HandlersModule
export function defineHandlers<const M extends Machines>(
  machines: M,
  register: (control: Control<M>) => void,
): HandlersModule<M>
export function defineHandlers(
  first: Machines | ((control: Control) => void),
  second?: (control: Control) => void,
): HandlersModule {
  if (typeof first === 'function') return { machines: {}, register: first }
  return { machines: first, register: second! }
}

export interface LoadedHandlers {
  readonly machines: Machines
  readonly registrations: readonly Registration[]
  /** Handlers whose effects are withheld. */
  readonly shadows: readonly Registration[]
  readonly resolvers: ReadonlyMap<string, Resolver>
  /** Schedules run in the control database, wherever the other handlers run. */
  readonly schedules: readonly Schedule[]
  /** Runs for deleted documents are in the control database, too. */
  readonly deletions: readonly Deletion[]
}

/** Registers the handlers of a module. Throws `ConfigError` with every fault of its machines, or of its handlers. */
export function collectHandlers<M extends Machines>({ machines, register }: HandlersModule<M>): LoadedHandlers {
  const faults = checkMachines(machines)
  if (faults.length > 0) throw new ConfigError(faults)
  const control = createControl(machines, ({ faults: more }) => faults.push(...more))
  register(control)
  if (faults.length > 0) throw new ConfigError(faults)
  return control
}

/**
 * Joins the handlers of several modules. Throws `ConfigError` if two modules handle the same state or declare the same
 * type. Also throws if a handler does not fit the machine of another module.
 */
export function joinHandlers(loaded: readonly LoadedHandlers[]): LoadedHandlers {
  const registrations = loaded.flatMap((handlers) => handlers.registrations)
  const shadows = loaded.flatMap((handlers) => handlers.shadows)
  const types = loaded.flatMap(({ machines }) => Object.keys(machines))
  const places = registrations.map(({ type, state }) => `a handler for ${type} in state ${state}`)
  const resolvers = loaded.flatMap((handlers) => [...handlers.resolvers])
  const schedules = loaded.flatMap((handlers) => handlers.schedules)
  const deletions = loaded.flatMap((handlers) => handlers.deletions)
  const named = [
    ...types.map((type) => `a machine for ${type}`),
    ...places,
    ...shadows.map(({ type, state }) => `a shadow handler for ${type} in state ${state}`),
    ...resolvers.map(([type]) => `a resolver for ${type}`),
    ...schedules.map(({ name }) => `a schedule named ${name}`),
    ...deletions.map(({ type }) => `a handler for deletions of ${type}`),
  ]
  const twice = new Set(named.filter((name, index) => named.indexOf(name) !== index))
  if (twice.size > 0) throw new ConfigError([...twice].map((name) => `${name}: expected one, got two`))
  const machines = Object.assign({}, ...loaded.map(({ machines }) => machines)) as Machines
  const faults = [...registrations, ...shadows]
    .filter(({ type }) => Object.hasOwn(machines, type))
    .flatMap((registration) => handlerFault(registration, machines) ?? [])
  if (faults.length > 0) throw new ConfigError(faults)
  return { machines, registrations, shadows, resolvers: new Map(resolvers), schedules, deletions }
}
