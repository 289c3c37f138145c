import type { DatabaseKind } from '../deploy/compile.ts'
import { typesAndStatesOf, type DispatchTable, typesOf } from '../docstate/classify.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { createHash } from 'node:crypto'

/** The work in a database: its kind, and its handlers. */
export interface Job {
  readonly kind: DatabaseKind
  /** The same object for all databases with the same handlers. */
  readonly table: DispatchTable
}

export type JobOf = (this: void, database: string) => Job

/** A job with derived values, which are computed once for thousands of databases. */
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
 * Owner of the checkpoints in visited databases, shared by all workers with the same handlers. Another handler, state
 * or timeout of a state changes the owner. The database is then read from its start: it may contain documents
 * that were never classified.
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
