import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Machines, State } from '../../ddocs/machine.ts'
import type { Doc } from '../couch/documents.ts'
import type { Registration } from '../docstate/types.ts'

/**
 * Lists, as sentences, handlers that do not match the machines in a database's design document `docstate`. Such
 * handlers must not start: the database's guard enforces another machine. A type that neither side declares has no
 * guard, so any handler matches. Admins may write any value into the design document.
 *
 * @param ddoc the database's `_design/docstate`, undefined if missing
 * @param machines the machines for which the handlers were written
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

/** The part of a machine that the guard reads. Only the sidecar uses timeouts, and they may be settings. */
function guardedPart(machine: object): unknown {
  const states = Object.entries(machine).map(([state, declared]) => [state, withoutTimeout(declared)] as const)
  return JSON.parse(JSON.stringify(Object.fromEntries(states)))
}

function withoutTimeout(declared: unknown): unknown {
  if (!isObject(declared)) return declared
  const { timeout: _timeout, ...rest } = declared
  return rest
}
