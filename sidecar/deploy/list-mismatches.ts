import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Machines, State } from '../../ddocs/machine.ts'
import type { Doc } from '../couch/documents.ts'
import type { Registration } from '../docstate/types.ts'

/**
 * Where the handlers of this sidecar do not match the machines that a database's design document `docstate` declares,
 * as sentences. Such handlers must not start: the guard of the database speaks of another machine than they do. None
 * for a type that is not declared: then nothing guards it, and any handler will do. Admins may write anything there.
 *
 * @param ddoc `_design/docstate` as it is in the database, undefined if it is not there
 * @param machines those that the handlers were written for
 */
export function listMismatches(
  ddoc: Doc | undefined,
  registrations: readonly Pick<Registration, 'type' | 'state' | 'mode'>[],
  machines: Machines,
): string[] {
  if (!ddoc) return ['there is no design document docstate; run the deploy']
  const guarded = (isObject(ddoc.machines) ? ddoc.machines : {}) as Machines
  return registrations.flatMap(({ type, state, mode }) => {
    const machine = Object.hasOwn(guarded, type) ? guarded[type] : undefined
    const written = Object.hasOwn(machines, type) ? machines[type] : undefined
    if (written && !isDeepStrictEqual(machine && guardedPart(machine), guardedPart(written))) {
      const found = machine
        ? `declares another machine of ${type}`
        : `declares no machine of ${type}, and guards nothing`
      return [`${mode} handler for ${type} in state ${state}: the design document ${found}; run the deploy`]
    }
    if (!machine) return []
    const declared = Object.hasOwn(machine, state) ? machine[state] : undefined
    if (declared?.mode === mode) return []
    const found = declared ? `declares that state as ${modeOf(declared)}` : 'has no such state'
    return [
      `${mode} handler for ${type} in state ${state}: the design document ${found}; deploy the machines of this version`,
    ]
  })
}

const modeOf = ({ mode }: State) => (typeof mode === 'string' ? mode : 'not handled')

/** What the guard reads of a machine. How long a state lasts is the sidecar's matter, and may be a setting. */
function guardedPart(machine: object): unknown {
  const states = Object.entries(machine).map(([state, declared]) => [state, withoutTimeout(declared)] as const)
  return JSON.parse(JSON.stringify(Object.fromEntries(states)))
}

function withoutTimeout(declared: unknown): unknown {
  if (!isObject(declared)) return declared
  const { timeout: _timeout, ...rest } = declared
  return rest
}
