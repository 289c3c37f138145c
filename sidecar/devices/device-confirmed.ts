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
 * device confirmed → active: makes the device's own CouchDB user, with the role of its owner. The credentials move from
 * the device's document to the user. A second run gives the same user.
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

/** The password hash of a confirm document, checked again: an admin may have written it after its handler's check. */
const checkedPassword = (made: HashedPassword | undefined): HashedPassword | undefined =>
  credentialFaults(made, { mayGenerate: false }).length === 0 ? made : undefined

/**
 * Whether the device may have a user. A safe handler may run late on a second worker: the device may be revoked, and
 * its user deleted, before this worker writes the user. This worker reads the device after it writes the user. A revoke
 * deletes the user after it writes the device. So one of the two sees the other's write. The check also follows a
 * failed write of the user: that write may still arrive.
 */
const isEntitled = (device: StoredDoc | undefined): boolean =>
  device?.type === 'device' && (device.state === 'confirmed' || device.state === 'active')

const failureOf = (work: Promise<unknown>): Promise<{ readonly thrown: unknown } | undefined> =>
  work.then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  )
