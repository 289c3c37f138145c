/**
 * Documents in a state that the machine of their type does not declare: the state was renamed, or written with a
 * mistyped name. No handler takes them, and the guard lets no client move them, so they are counted and named.
 */
import { isObject } from '../../ddocs/lib/document.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { didYouMean } from '../core/nearest.ts'

export interface UndeclaredCount {
  readonly type: string
  readonly state: string
  readonly count: number
}

/** False for a type without a machine. `machines` may be what stands in a design document. */
export function isUndeclared(machines: Machines, type: string, state: string): boolean {
  const machine = Object.hasOwn(machines, type) ? machines[type] : undefined
  if (!isObject(machine) || Object.hasOwn(machine, state)) return false
  const mayFail = Object.values(machine).some((declared) => isObject(declared) && declared.mode)
  return !(state === 'error' && mayFail)
}

/** Of counts of any kind those in undeclared states, added up for each type and state. */
export const undeclaredIn = (counts: readonly UndeclaredCount[], machines: Machines): UndeclaredCount[] =>
  addUp(counts.filter(({ type, state }) => isUndeclared(machines, type, state)))

/** One for each type and state. */
export function addUp(counts: Iterable<UndeclaredCount>): UndeclaredCount[] {
  const sums = new Map<string, UndeclaredCount>()
  for (const { type, state, count } of counts) {
    const key = JSON.stringify([type, state])
    sums.set(key, { type, state, count: count + (sums.get(key)?.count ?? 0) })
  }
  return [...sums.values()]
}

/** For the end of a sentence that names such a state. */
export function declaredStates(machines: Machines, type: string, state: string): string {
  const states = Object.keys(machines[type] ?? {})
  return `${states.join(', ') || 'none'}${didYouMean(state, states)}`
}
