import type { Doc } from '../couch/documents.ts'

/** A design document adapted to one database. */
export interface Finished {
  readonly ddoc: Doc
  /** Types whose machines stay, although only the database declares them. */
  readonly kept: readonly string[]
}

/**
 * Adapts a design document to one database. Machines that only the database declares stay in `_design/docstate`:
 * otherwise a deploy would remove the guard of another developer's documents. `remove` removes these machines. Without
 * machines, the document has no guard, so that CouchDB calls no function at each write.
 *
 * @param current the database's design document, if it exists
 */
export function finishDdoc(compiled: Doc, current: Doc | undefined, remove = false): Finished {
  if (compiled._id !== '_design/docstate') return { ddoc: compiled, kept: [] }
  const own = machinesIn(compiled)
  const currentMachines = remove ? {} : machinesIn(current)
  const kept = Object.keys(currentMachines).filter((type) => !Object.hasOwn(own, type))
  const ddoc = kept.length > 0 ? { ...compiled, machines: { ...currentMachines, ...own } } : compiled
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
