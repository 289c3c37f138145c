/**
 * Documents in a state that the machine of their type does not declare: the state was renamed or mistyped. No handler
 * takes these documents, and `validate_doc_update` lets no client move them. So they are counted and named.
 */
import { isObject } from '../../ddocs/lib/document.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { didYouMean } from '../core/nearest.ts'

export interface UndeclaredCount {
  readonly type: string
  readonly state: string
  readonly count: number
}

/** Whether the machine lacks the state; false without a machine. `machines` may come from a design document. */
export function isUndeclared(machines: Machines, type: string, state: string): boolean {
  const machine = Object.hasOwn(machines, type) ? machines[type] : undefined
  if (!isObject(machine) || Object.hasOwn(machine, state)) return false
  const mayFail = Object.values(machine).some((declared) => isObject(declared) && declared.mode)
  return !(state === 'error' && mayFail)
}

/** Counts of documents in undeclared states, added up by type and state. */
export const undeclaredIn = (counts: readonly UndeclaredCount[], machines: Machines): UndeclaredCount[] =>
  addUp(counts.filter(({ type, state }) => isUndeclared(machines, type, state)))

/** One count for each type and state. */
export function addUp(counts: Iterable<UndeclaredCount>): UndeclaredCount[] {
  const sums = new Map<string, UndeclaredCount>()
  for (const { type, state, count } of counts) {
    const key = JSON.stringify([type, state])
    sums.set(key, { type, state, count: count + (sums.get(key)?.count ?? 0) })
  }
  return [...sums.values()]
}

/** The declared states, for the end of a sentence that names an undeclared one. */
export function declaredStates(machines: Machines, type: string, state: string): string {
  const states = Object.keys(machines[type] ?? {})
  return `${states.join(', ') || 'none'}${didYouMean(state, states)}`
}
