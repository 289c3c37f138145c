import { SidecarError } from '../core/errors.ts'
import type { CallOptions, Database } from '../couch/database.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { HashedPassword } from './device-documents.ts'
import { userIdOf } from './device-names.ts'

/** The CouchDB users of devices: one for each, revocable alone. */
export interface DeviceUsers {
  /** Makes the user, or gives the one with these roles another password. Throws `CouchError`. */
  grant(user: DeviceUser, options: CallOptions): Promise<void>
  /** Takes the user away, every branch of it, and with it every session. One that is not there is fine. */
  revoke(name: string, options: CallOptions): Promise<void>
}

export interface DeviceUser {
  readonly name: string
  readonly roles: readonly string[]
  readonly deviceId: string
  readonly password: HashedPassword
}

/** It may have been given others meanwhile: those of its owner's channels. */
const hasAll = (there: unknown, roles: readonly string[]): boolean =>
  Array.isArray(there) && roles.every((role) => there.includes(role))

const TRIES = 10

/**
 * In `_users`. The name of a user, which follows from the id of its device, says whose it is; fields do not, since the user
 * may write them where `_users` is open.
 */
export function createDeviceUsers(users: Database): DeviceUsers {
  return {
    async grant({ name, roles, deviceId, password }, options) {
      const { password_scheme, pbkdf2_prf, derived_key, salt, iterations } = password
      const doc = {
        ...{ _id: userIdOf(name), type: 'user', name, roles, device_id: deviceId },
        ...{ password_scheme, derived_key, salt, iterations, ...(pbkdf2_prf && { pbkdf2_prf }) },
      }
      try {
        await users.put(doc, options)
      } catch (thrown) {
        if (!isCouchError(thrown, 'conflict')) throw thrown
        const there = await users.get(doc._id, {}, options)
        if (!hasAll(there.roles, roles)) throw thrown // another owner's
        await users.put({ ...doc, roles: there.roles, _rev: there._rev }, options)
      }
    },

    async revoke(name, options) {
      for (let tries = 1; tries <= TRIES; tries++) {
        const leaves = await users.leaves(userIdOf(name), options) // one that is left would be the user from now on
        const living = leaves.filter(({ _deleted }) => !_deleted)
        if (living.length === 0) return
        for (const { _id, _rev } of living) {
          try {
            await users.remove(_id, _rev, options)
          } catch (thrown) {
            if (!isCouchError(thrown, 'conflict')) throw thrown // CouchDB rehashes at a first login
          }
        }
      }
      throw new SidecarError('busy', `${name} is there again whenever it was taken away`)
    },
  }
}
