/**
 * Checks machines and their handlers. A mistyped name would leave documents in a state that no handler takes and no
 * client may leave. Faults refuse the machines. Doubts are only logged, since an odd table can be intended. Admins may
 * write anything, and another sidecar may have the other handlers.
 */
import { inspect } from 'node:util'
import { z } from 'zod'
import type { Machine, Machines } from '../../ddocs/machine.ts'
import { SHOWN } from '../core/failure.ts'
import { LONGEST_MS } from '../core/duration.ts'
import { didYouMean } from '../core/nearest.ts'
import type { DispatchTable } from './classify.ts'
import type { Registration } from './types.ts'

const writer = z.enum(['sidecar', 'owner', 'client'])
const fields = z.strictObject({
  mode: z.enum(['safe', 'unsafe']).optional(),
  create: writer.optional(),
  next: z.record(z.string(), writer).optional(),
  timeout: z
    .union(
      [
        z.strictObject({ afterMs: z.number().positive().max(LONGEST_MS), next: z.string() }),
        z.strictObject({ at: z.string().regex(/^[^_]/, 'expected the name of a field of your own'), next: z.string() }),
      ],
      {
        error: ({ input }) =>
          `expected { afterMs, next }, or { at, next } with the name of the field, got ${inspect(input, SHOWN)}`,
      },
    )
    .optional(),
  renamed: z.string().optional(),
})
const state = fields.refine(
  ({ renamed, ...others }) => renamed === undefined || Object.keys(others).length === 0,
  'expected only renamed: declare the other properties under the new name of the state',
)
const machine = z.record(z.string(), state)

/** Returns each fault as a sentence; none for valid machines. Accepts any value, as JavaScript is not typed. */
export function checkMachines(machines: Machines): string[] {
  const table = z.record(z.string(), z.unknown()).safeParse(machines)
  if (!table.success) return [`the machines: ${table.error.issues[0]!.message}`]
  return Object.entries(table.data).flatMap(([type, declared]) => {
    const parsed = machine.safeParse(declared)
    const faults = parsed.success ? unknownTargets(parsed.data as Machine) : parsed.error.issues.map(textOf)
    return faults.map((fault) => `the machine of ${type}: ${fault}`)
  })
}

const textOf = ({ path, message }: z.core.$ZodIssue) => [path.join('.'), message].filter(Boolean).join(': ')

/** The states without a new name. */
const presentStates = (machine: Machine): string[] =>
  Object.keys(machine).filter((state) => machine[state]!.renamed === undefined)

function unknownTargets(machine: Machine): string[] {
  const states = presentStates(machine)
  if (states.length === 0) return ['expected at least one state']
  return Object.entries(machine).flatMap(([state, { next = {}, timeout, renamed }]) => {
    const all = [
      ...Object.keys(next).map((target) => ['next', target] as const),
      ...(timeout ? [['timeout.next', timeout.next] as const] : []),
      ...(renamed === undefined ? [] : [['renamed', renamed] as const]),
    ]
    return all
      .filter(([, target]) => !states.includes(target))
      .map(([where, target]) => {
        const expected = `expected one of ${states.join(', ')}; got ${target}${didYouMean(target, states)}`
        return `state ${state}: ${where}: ${expected}`
      })
  })
}

/** Why a handler does not fit the machines; undefined if it fits, or without machines. */
export function handlerFault(
  { type, state, mode }: Pick<Registration, 'type' | 'state' | 'mode'>,
  machines: Machines,
): string | undefined {
  const handler = `${mode} handler for ${type} in state ${state}`
  const undeclared = typeFault(handler, type, machines)
  if (undeclared !== undefined) return undeclared
  const machine = machines[type] ?? {}
  const { renamed } = (Object.hasOwn(machine, state) && machine[state]) || {}
  if (renamed !== undefined) return `${handler}: the machine of ${type} calls this state ${renamed} now`
  if (Object.keys(machines).length === 0 || (Object.hasOwn(machine, state) && machine[state]?.mode === mode)) return
  const states = Object.keys(machine).filter((name) => machine[name]!.mode === mode)
  const declared = states.join(', ') || 'none'
  return `${handler}: the machine of ${type} declares as ${mode}: ${declared}${didYouMean(state, states)}`
}

/** If machines are declared, each type has one: any other type is mistyped. */
export function typeFault(subject: string, type: string, machines: Machines): string | undefined {
  const types = Object.keys(machines)
  if (types.length === 0 || types.includes(type)) return undefined
  const expected = `expected a type that has a machine (${types.join(', ')}), or a module of its own`
  return `${subject}: ${expected}; got ${type}${didYouMean(type, types)}`
}

/** Returns possible mistakes as sentences. */
export function listDoubts({ machines, registrations }: DoubtfulTable): string[] {
  const types = Object.keys(machines)
  const ofMachines = Object.entries(machines).flatMap(([type, machine]) => {
    const handled = registrations.filter((one) => one.type === type).map(({ state }) => state)
    return [
      ...unreachable(machine).map(
        (state) =>
          `the machine of ${type}: no document can reach state ${state}: no next or timeout of a state that documents ` +
          `reach leads to it. If admins or handlers create documents in it, declare create: 'sidecar'`,
      ),
      ...withoutEnd(machine).map(
        (state) =>
          `the machine of ${type}: no document can leave state ${state}, although it has a handler: what the handler ` +
          `returns in another state is refused. If documents are to stay in it, declare next: {}`,
      ),
      ...Object.entries(machine)
        .filter(([state, { mode }]) => mode && !handled.includes(state))
        .map(
          ([state, { mode }]) =>
            `the machine of ${type} declares state ${state} as ${mode}, and no handler here takes it: its documents ` +
            `wait for a sidecar that has one`,
        ),
    ]
  })
  const strange = registrations.flatMap(({ type, state, mode }) => {
    const suggestion = types.includes(type) ? '' : didYouMean(type, types)
    return suggestion
      ? [`${mode} handler for ${type} in state ${state}: no machine of ${type} is declared${suggestion}`]
      : []
  })
  return [...ofMachines, ...strange]
}

interface DoubtfulTable extends Pick<DispatchTable, 'machines'> {
  readonly registrations: readonly Pick<Registration, 'type' | 'state' | 'mode'>[]
}

/** States that no document reaches. Without any `create`, admins create documents in states that no state leads to. */
function unreachable(machine: Machine): string[] {
  const states = presentStates(machine)
  const targetsOf = (state: string) => {
    const { next = {}, timeout, mode } = machine[state] ?? {}
    return [...Object.keys(next), ...(timeout ? [timeout.next] : []), ...(mode ? ['error'] : [])]
  }
  const made = states.filter((state) => machine[state]!.create)
  const targets = new Set(states.flatMap(targetsOf))
  const withoutSource = states.filter((state) => !targets.has(state))
  const reached = new Set([made, withoutSource, states].find((begins) => begins.length > 0))
  for (const state of reached) for (const target of targetsOf(state)) reached.add(target) // also visits what it adds
  return states.filter((state) => !reached.has(state))
}

const withoutEnd = (machine: Machine): string[] =>
  Object.keys(machine).filter((state) => {
    const { mode, next, timeout } = machine[state]!
    return mode && !next && !timeout
  })
