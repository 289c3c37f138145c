import type { Machines, State } from '../../../ddocs/machine.ts'

/** What is declared about a state, as sentences about a document in it. */
export function machineLines(type: string, state: string, machines: Machines): string[] {
  const machine = Object.hasOwn(machines, type) ? machines[type] : undefined
  if (!machine) return [`Nobody declares a machine of ${type}: any state may follow any other.`]
  const declared = stateIn(machines, type, state)
  if (!declared) return [`The machine of ${type} has no such state, but ${Object.keys(machine).join(', ')}.`]
  const targets = Object.entries(declared.next ?? {}).map(([target, writer]) => `${target} (by the ${writer})`)
  const { timeout } = declared
  return [
    targets.length > 0 ? `It may become ${targets.join(', ')}.` : 'No state is declared to follow this one.',
    ...(timeout ? [`After ${lasting(timeout.afterMs)} in this state it becomes ${timeout.next}.`] : []),
  ]
}

/** Undefined where nobody declares it. */
export function stateIn(machines: Machines, type: string, state: string): State | undefined {
  const machine = (Object.hasOwn(machines, type) ? machines[type] : undefined) ?? {}
  return Object.hasOwn(machine, state) ? machine[state] : undefined
}

const UNITS = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

/** In the largest unit that leaves no rest. */
function lasting(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms % size === 0) ?? ['ms', 1]
  return `${ms / size} ${unit}`
}
