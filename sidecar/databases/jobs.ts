import type { DatabaseKind } from '../deploy/compile.ts'
import { typesAndStatesOf, type DispatchTable } from '../docstate/classify.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { ownerOf } from './owner.ts'

/** What is done in a database: of which kind it is, and what is handled there. */
export interface Job {
  readonly kind: DatabaseKind
  /** The same for all databases that are alike. */
  readonly table: DispatchTable
}

export type JobOf = (this: void, database: string) => Job

/** What follows from a job, worked out once for thousands of databases. */
export interface WorkedOut extends Job {
  readonly typesAndStates: readonly TypeAndState[]
  readonly owner: string
}

export function workOut(jobOf: JobOf): (database: string) => WorkedOut {
  const known = new WeakMap<DispatchTable, WorkedOut>()
  return (database) => {
    const job = jobOf(database)
    const before = known.get(job.table)
    if (before) return before
    const typesAndStates = typesAndStatesOf(job.table)
    const made = { ...job, typesAndStates, owner: ownerOf(job.table) }
    known.set(job.table, made)
    return made
  }
}
