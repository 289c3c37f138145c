import type { Doc } from '../couch/documents.ts'

/** What decides the signature of an index, in whatever order its keys are: CouchDB takes another order for another index. */
const ORDERED = ['language', 'options', 'views'] as const

/**
 * The design document with the order that its views have in the database: those that are new come after them, by their
 * names. Files have no order that one could rely on, and an index that is built must not be built again for that.
 */
export function keepOrder(ddoc: Doc, current: Doc | undefined): Doc {
  const present = ORDERED.filter((field) => ddoc[field] !== undefined)
  const ordered = present.map((field) => [field, inOrderOf(current?.[field], ddoc[field])] as const)
  return { ...ddoc, ...Object.fromEntries(ordered) }
}

function inOrderOf(model: unknown, value: unknown): unknown {
  if (!isObject(value)) return value
  const known = isObject(model) ? model : {}
  const first = Object.keys(known).filter((key) => Object.hasOwn(value, key))
  const more = Object.keys(value).filter((key) => !Object.hasOwn(known, key))
  const keys = [...first, ...more.sort()]
  return Object.fromEntries(keys.map((key) => [key, inOrderOf(known[key], value[key])]))
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
