import { createHash } from 'node:crypto'
import { typesOf, type DispatchTable } from '../docstate/classify.ts'

/**
 * Whose the checkpoints are in databases that are visited: of all workers that look for the same. With another handler,
 * or an end of a state, or other states of a machine, a database is read from its start: there may be documents in it that nobody has asked about.
 */
export function ownerOf(table: DispatchTable): string {
  const { registrations, machines, resolvers = new Map<string, unknown>() } = table
  const states = Object.entries(machines).flatMap(([type, machine]) =>
    Object.entries(machine).map(([state, { timeout }]) => [timeout ? 'end' : 'state', type, state]),
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
