import type { Machine } from '../../../ddocs/machine.ts'
import type { Doc } from '../../couch/documents.ts'
import { isKnown } from './merge.ts'

/**
 * What is wrong with the document that a resolver made of `ours` and another, as text: what JavaScript lets through and
 * the types do not. Undefined: nothing.
 */
export function checkMerged(made: unknown, ours: Doc, machine?: Machine): string | undefined {
  if (typeof made !== 'object' || made === null) return `expected a document, got ${nameOf(made)}`
  if (isPromise(made)) return 'expected a document, got a promise: a resolver is not async'
  if (Array.isArray(made) || !isPlain(made)) return `expected a document, got ${nameOf(made)}`
  const { type, state } = made as Partial<Doc>
  if (type !== ours.type) return `expected type ${textOf(ours.type)}, got ${textOf(type)}`
  if (typeof ours.state === 'string' && typeof state !== 'string') return `expected a state, got ${textOf(state)}`
  if (isKnown(machine, ours.state) && !isKnown(machine, state))
    return `expected a state of the machine, got ${textOf(state)}`
  try {
    JSON.stringify(made)
    return undefined
  } catch (thrown) {
    return `expected a document with JSON: ${(thrown as Error).message}`
  }
}

function isPromise(made: object): boolean {
  if (typeof (made as { then?: unknown }).then !== 'function') return false
  Promise.resolve(made).catch(() => undefined) // nobody else waits for it
  return true
}

/** A module of handlers that runs in another realm has an `Object` of its own. */
function isPlain(made: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(made)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

const nameOf = (made: unknown): string =>
  typeof made === 'object' && made !== null ? (Array.isArray(made) ? 'an array' : made.constructor.name) : String(made)
const textOf = (field: unknown): string => (typeof field === 'string' ? field : typeof field)
