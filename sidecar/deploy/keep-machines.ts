import type { Doc } from '../couch/documents.ts'

/** A design document as it is to be in one database. */
export interface Finished {
  readonly ddoc: Doc
  /** Types whose machines only the database declares, and that stay in it. */
  readonly kept: readonly string[]
}

/**
 * Machines that only the database declares stay in `_design/docstate`: a deploy without the handlers of another developer must
 * not take the guard off his documents. `remove` takes them out. Where no machine is left there is nothing to guard,
 * and CouchDB need not ask a function at every write.
 *
 * @param current the design document as it is in the database, if it is there
 */
export function finishDdoc(compiled: Doc, current: Doc | undefined, remove = false): Finished {
  if (compiled._id !== '_design/docstate') return { ddoc: compiled, kept: [] }
  const own = machinesIn(compiled)
  const there = remove ? {} : machinesIn(current)
  const kept = Object.keys(there).filter((type) => !Object.hasOwn(own, type))
  const ddoc = kept.length > 0 ? { ...compiled, machines: { ...there, ...own } } : compiled
  return { ddoc: ddoc.machines === undefined ? ddoc : withoutIdleGuard(ddoc), kept }
}

function machinesIn(ddoc: Doc | undefined): Readonly<Record<string, unknown>> {
  const machines = ddoc?.machines
  const isTable = typeof machines === 'object' && machines !== null && !Array.isArray(machines)
  return isTable ? (machines as Record<string, unknown>) : {}
}

function withoutIdleGuard(ddoc: Doc): Doc {
  const { validate_doc_update: _guard, ...rest } = ddoc
  return Object.keys(machinesIn(ddoc)).length > 0 ? ddoc : rest
}
