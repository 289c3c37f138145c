import { SidecarError } from '../core/errors.ts'
import type { CallOptions, Database } from '../couch/database.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { HashedPassword } from './device-documents.ts'
import { userIdOf } from './device-names.ts'

/** The CouchDB users of devices: each device has its own, which can be revoked alone. */
export interface DeviceUsers {
  /** Makes the user, or sets another password for an existing user with these roles. Throws `CouchError`. */
  grant(user: DeviceUser, options: CallOptions): Promise<void>
  /** Deletes every branch of the user, which ends every session. Ignores a missing user. */
  revoke(name: string, options: CallOptions): Promise<void>
}

export interface DeviceUser {
  readonly name: string
  readonly roles: readonly string[]
  readonly deviceId: string
  readonly password: HashedPassword
}

/** Whether the user has these roles. It may have others by now: those of its owner's channels. */
const hasAll = (current: unknown, roles: readonly string[]): boolean =>
  Array.isArray(current) && roles.every((role) => current.includes(role))

const TRIES = 10

/**
 * Manages device users in `_users`. Only the name of a user, which follows from the device's id, identifies its device.
 * Fields do not: the user may write them if `_users` is open.
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
        const current = await users.get(doc._id, {}, options)
        if (!hasAll(current.roles, roles)) throw thrown // another owner's user
        await users.put({ ...doc, roles: current.roles, _rev: current._rev }, options)
      }
    },

    async revoke(name, options) {
      for (let tries = 1; tries <= TRIES; tries++) {
        const leaves = await users.leaves(userIdOf(name), options) // a remaining leaf would become the user
        const living = leaves.filter(({ _deleted }) => !_deleted)
        if (living.length === 0) return
        for (const { _id, _rev } of living) {
          try {
            await users.remove(_id, _rev, options)
          } catch (thrown) {
            if (!isCouchError(thrown, 'conflict')) throw thrown // CouchDB rehashes the password at a first login
          }
        }
      }
      throw new SidecarError('busy', `${name} reappears after each deletion`)
    },
  }
}
