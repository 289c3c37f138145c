import type { Machine } from '../../ddocs/machine.ts'
import type { Doc } from '../couch/documents.ts'
import type { Registration } from '../docstate/types.ts'

/**
 * Where the handlers of this sidecar do not match the machines that a database's design document `docstate` declares,
 * as sentences. Such handlers must not start: the guard of the database speaks of another machine than they do. None
 * for a type that the design document does not declare: then nothing guards it, and any handler will do.
 *
 * @param ddoc `_design/docstate` as it is in the database, undefined if it is not there
 */
export function listMismatches(
  ddoc: Doc | undefined,
  registrations: readonly Pick<Registration, 'type' | 'state' | 'mode'>[],
): string[] {
  if (!ddoc) return ['there is no design document docstate; run the deploy']
  const machines = (ddoc.machines ?? {}) as Readonly<Record<string, Machine>>
  return registrations.flatMap(({ type, state, mode }) => {
    const machine = Object.hasOwn(machines, type) ? machines[type] : undefined
    if (!machine) return []
    const declared = Object.hasOwn(machine, state) ? machine[state] : undefined
    if (declared?.mode === mode) return []
    const found = declared ? `declares that state as ${declared.mode ?? 'not handled'}` : 'has no such state'
    return [
      `${mode} handler for ${type} in state ${state}: the design document ${found}; deploy the machines of this version`,
    ]
  })
}
