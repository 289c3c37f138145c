import { createHash } from 'node:crypto'
import type { Place } from '../workers/sharing.ts'

/**
 * Whose the places are in databases that are visited: of all workers that handle the same. With other handlers a
 * database is read from its start: there may be documents in it that nobody has asked about.
 */
export function ownerOf(places: readonly Place[]): string {
  const names = places.map(({ type, state }) => JSON.stringify([type, state])).sort()
  return `visits:${createHash('sha256').update(names.join()).digest('hex').slice(0, 16)}`
}
