import type { DatabaseKind } from '../deploy/compile.ts'
import { typesAndStatesOf, type DispatchTable, typesOf } from '../docstate/classify.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { createHash } from 'node:crypto'

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

/**
 * Whose the checkpoints are in databases that are visited: of all workers that look for the same. With another handler,
 * or an end of a state, or other states of a machine, a database is read from its start: there may be documents in it that were never classified.
 */
export function ownerOf(table: DispatchTable): string {
  const { registrations, machines, resolvers = new Map<string, unknown>() } = table
  const states = Object.entries(machines).flatMap(([type, machine]) =>
    Object.entries(machine).map(([state, { timeout, renamed }]) => {
      return [timeout ? 'end' : renamed ? 'renamed' : 'state', type, state]
    }),
  )
  const names = [
    ...registrations.map(({ type, state }) => ['handler', type, state]),
    ...states,
    ...typesOf(table).map((type) => ['conflicts', type]),
    ...[...resolvers.keys()].map((type) => ['resolver', type]),
  ]
  const sorted = names.map((name) => JSON.stringify(name)).sort()
  return `visits:${createHash('sha256').update(sorted.join()).digest('hex').slice(0, 16)}`
}
