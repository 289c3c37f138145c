import { Reject } from '../core/errors.ts'
import type { Context } from '../docstate/types.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { credentialFaults } from '../../ddocs/lib/credentials.ts'
import { deviceFaults } from '../../ddocs/lib/device.ts'
import { hashedPassword, type Device, type HashedPassword } from './device-documents.ts'
import { normaliseAddress, ownerRoleOf } from '../accounts/owner.ts'
import { userNameOf } from './device-names.ts'
import type { DeviceUsers } from './users.ts'

/**
 * device confirmed → active: a CouchDB user of its own, with the role of its owner. The credentials move there and
 * are not in the device's document any more. Doing it twice gives the same user.
 */
export const giveAccount =
  ({ users }: { readonly users: DeviceUsers }) =>
  async (device: Device & StoredDoc, ctx: Context) => {
    const faults = deviceFaults(device)
    if (faults.length > 0) throw new Reject('bad_device', faults.join('; '))
    const { credentials, ...doc } = device
    const { credentials: made, ...confirmation } = device.confirmation ?? {}
    const password = hashedPassword(credentials) ?? checkedPassword(made)
    if (!password) {
      throw new Reject(
        'no_credentials',
        'the device brought no credentials, and was not confirmed on the page that would have shown generated ones',
      )
    }
    const name = userNameOf(doc._id)
    const role = ownerRoleOf(normaliseAddress(doc.owner))
    const grant = users.grant({ name, roles: [role], deviceId: doc._id, password }, { signal: ctx.signal })
    const failure = await failureOf(grant)
    if (!isEntitled(await ctx.find(doc._id))) {
      await users.revoke(name, { signal: ctx.signal })
      return
    }
    if (failure) throw failure.thrown
    return {
      ...doc,
      ...(device.confirmation && { confirmation }),
      state: 'active' as const,
      user: name,
      owner_role: role,
    }
  }

/** Came with a confirm document, whose handler has checked it; but an admin may have written it. */
const checkedPassword = (made: HashedPassword | undefined): HashedPassword | undefined =>
  credentialFaults(made, { mayGenerate: false }).length === 0 ? made : undefined

/**
 * A safe handler may run on two workers, and on one of them be late: the device may have been revoked meanwhile, and
 * its user taken away before ours was written. The device is read after the user, and a revoke takes the user after the
 * device: so one of the two sees what the other did. Also after a write that failed: it may arrive nevertheless.
 */
const isEntitled = (device: StoredDoc | undefined): boolean =>
  device?.type === 'device' && (device.state === 'confirmed' || device.state === 'active')

const failureOf = (work: Promise<unknown>): Promise<{ readonly thrown: unknown } | undefined> =>
  work.then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  )
