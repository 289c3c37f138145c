/**
 * Documents in a state that the machine of their type does not declare: the state was renamed or mistyped. No handler
 * takes these documents, and `validate_doc_update` lets no client move them. So they are counted and named.
 */
import type { Logger } from 'pino'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { didYouMean } from '../core/nearest.ts'
import type { Doc } from '../couch/documents.ts'

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

export interface UndeclaredLogOptions {
  readonly machines: () => Machines
  /** What the last resync of the database counted. */
  readonly counted: () => readonly UndeclaredCount[]
  readonly log: Logger
}

/** Warns once of each type and state: at the first document, or at the resync that counts them. */
export class UndeclaredLog {
  readonly #options: UndeclaredLogOptions
  /** Warned of since the last resync. */
  #warned: Pick<UndeclaredCount, 'type' | 'state'>[] = []

  constructor(options: UndeclaredLogOptions) {
    this.#options = options
  }

  /** Call when a row of the feed has a document in an undeclared state. */
  passed({ _id, type, state }: Doc): void {
    this.#warn({ type: String(type), state: String(state) }, { doc: _id })
  }

  /** Call at a resync, before its counts are stored. */
  resynced(now: readonly UndeclaredCount[]): void {
    for (const { type, state, count } of now) this.#warn({ type, state }, { count })
    this.#warned = []
  }

  #warn(pair: Pick<UndeclaredCount, 'type' | 'state'>, which: { doc: string } | { count: number }): void {
    const { machines, counted, log } = this.#options
    if ([...counted(), ...this.#warned].some(({ type, state }) => type === pair.type && state === pair.state)) return
    this.#warned.push(pair)
    const declared = declaredStates(machines(), pair.type, pair.state)
    log.warn({ ...which, ...pair, declared }, 'documents are in a state that their machine does not declare')
  }
}
