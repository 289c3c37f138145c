/**
 * Guards the control database. Clients may write only devices, confirmations and documents of the user's own machines.
 * Each document must have a valid shape and follow its machine's transitions. All other documents belong to the sidecar
 * and to admins. Invalid settings are refused even from an admin.
 */
import { confirmChangeFaults, confirmFaults } from '../../lib/confirm.ts'
import { deviceChangeFaults, deviceFaults } from '../../lib/device.ts'
import { forbid, has, isAdmin, quote, type Doc, type UserCtx } from '../../lib/document.ts'
import { beforeOf, refusalOf, withItsOwner } from '../../lib/guard.ts'
import { isSettings, settingsFaults } from '../../lib/live-settings.ts'
import type { Machines } from '../../machine.ts'
import type { ControlMachines } from '../../machines.ts'

type ClientsType = Extract<keyof ControlMachines, 'device' | 'confirm'>
type FaultsOf = (doc: Doc, before: Doc | null) => string[]

/** Checks of the built-in types that clients may create; only the sidecar creates the others. */
const shapes: Readonly<Record<string, FaultsOf>> & Readonly<Record<ClientsType, FaultsOf>> = {
  device: (doc, before) => [...deviceFaults(doc), ...deviceChangeFaults(doc, before)],
  confirm: (doc, before) => [...confirmFaults(doc), ...confirmChangeFaults(doc, before)],
}

/** Prefixes of ids that only the sidecar may write. */
const RESERVED =
  /^(mails|guesses|config|limit|since|schedule|deletion|worker|account|channel|ended|database|invitation|invitations|canary):/

export default function validate(
  this: { readonly machines: Machines },
  newDoc: Doc,
  oldDoc: Doc | null,
  userCtx: UserCtx,
): void {
  if (isAdmin(userCtx)) return refuse(isSettings(newDoc) && !newDoc._deleted ? settingsFaults(newDoc) : [])
  if (newDoc._deleted) forbid('documents of this database may be deleted by an admin only')
  const { machines } = this
  const { type } = newDoc
  if (typeof type !== 'string' || !has(machines, type))
    forbid(`expected a document of type ${typesForClients(machines).join(' or ')}, got type ${quote(type)}`)
  const before = beforeOf({ oldDoc })
  const doc = type === 'device' && newDoc.state === 'new' ? withItsOwner(newDoc, before) : newDoc
  if (RESERVED.test(String(newDoc._id)) || (before && !has(machines, String(before.type))))
    forbid('this document is the sidecar’s own')
  const refusal = refusalOf({ newDoc: doc, oldDoc, userCtx, machines })
  if (refusal !== undefined) forbid(refusal)
  refuse((has(shapes, type) && shapes[type]?.(doc, before)) || [])
}

const typesForClients = (machines: Machines): string[] =>
  Object.keys(machines).filter((type) => {
    const machine = machines[type] ?? {}
    return Object.keys(machine).some((state) => machine[state]?.create === 'client')
  })

function refuse(faults: readonly string[]): void {
  if (faults.length > 0) forbid(faults.join('; '))
}
