import { type ControlMachines, controlMachines } from '../../ddocs/machines.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Clock } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Control } from '../docstate/control.ts'
import { UNTIL_DONE } from '../docstate/handler-options.ts'
import { mergeFields, type Conflict, type Resolver } from '../docstate/conflicts/merge.ts'
import { matchCodes } from './confirm-clicked.ts'
import { forget } from '../docstate/handler-options.ts'
import { joinAccount } from './device-active.ts'
import { giveAccount } from './device-confirmed.ts'
import { mailOwner, type MailOptions } from './device-new.ts'
import { forgetDevice, takeAccount } from './device-revoked.ts'
import type { DeviceUsers } from './users.ts'

export interface RegistrationOptions extends MailOptions {
  readonly clock: Clock
  readonly users: DeviceUsers
  /** The owners' accounts, which a device joins and leaves. */
  readonly accounts: Pick<Accounts, 'notify' | 'remind'>
}

/** Registers the handlers of `device` and `confirm`: devices register by an email confirmation loop. */
export function registerDevices(control: Control<ControlMachines>, options: RegistrationOptions): void {
  control.unsafe('device', 'new', mailOwner(options))
  control.safe('confirm', 'clicked', matchCodes(options))
  control.safe('device', 'confirmed', giveAccount(options))
  control.safe('device', 'active', joinAccount(options), UNTIL_DONE)
  control.safe('device', 'revoked', takeAccount(options), UNTIL_DONE) // while the user exists, the device has access
  control.safe('device', 'forgotten', forgetDevice(options), UNTIL_DONE)
  control.safe('confirm', 'forgotten', forget, UNTIL_DONE)
  control.safe('mail_ledger', 'over', forget, UNTIL_DONE)
  control.safe('guesses', 'over', forget, UNTIL_DONE)
  control.resolve('device', mergeDevice)
}

/**
 * Merges two documents of a device. If the author of a change is unknown, the sidecar's value counts: codes and roles
 * must not come back from a device. Without a common revision, `theirs` is of another device, and is ignored.
 */
export const mergeDevice: Resolver = (conflict) => {
  if (conflict.baseRev === undefined) return conflict.ours
  return mergeFields(conflict.base ? conflict : { ...conflict, base: onlyIn(conflict) })
}

/** A substitute base: the fields that both documents have, with the values of `theirs`. So `theirs` changed none. */
function onlyIn({ ours, theirs }: Conflict): StoredDoc {
  return Object.fromEntries(Object.entries(theirs).filter(([field]) => field in ours)) as StoredDoc
}

/** The machines of the control database, with the link expiry of the settings. */
export function controlMachinesFor({ confirmExpiryMs }: { readonly confirmExpiryMs: number }): ControlMachines {
  const { device } = controlMachines
  const confirming = { ...device.confirming, timeout: { ...device.confirming.timeout, afterMs: confirmExpiryMs } }
  return { ...controlMachines, device: { ...device, confirming } }
}
