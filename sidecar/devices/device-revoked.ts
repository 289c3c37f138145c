import type { Accounts } from '../accounts/accounts.ts'
import { normaliseAddress } from '../accounts/owner.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { forget } from '../docstate/handler-options.ts'
import type { Context } from '../docstate/types.ts'
import type { Device } from './device-documents.ts'
import { userNameOf } from './device-names.ts'
import type { DeviceUsers } from './users.ts'

/**
 * device revoked: deletes the device's user, which ends its access. Has the account reconciled, so that the other
 * devices see the change. The document stays.
 */
export const takeAccount =
  ({ users, accounts }: { readonly users: DeviceUsers; readonly accounts: Pick<Accounts, 'remind'> }) =>
  async (doc: Device & StoredDoc, ctx: Context): Promise<void> => {
    await users.revoke(userNameOf(doc._id), { signal: ctx.signal })
    if (typeof doc.owner === 'string') await accounts.remind(normaliseAddress(doc.owner), { signal: ctx.signal })
  }

/** device forgotten: deletes the document and the user. The device is not active, but may have a user. */
export const forgetDevice =
  ({ users }: { readonly users: Pick<DeviceUsers, 'revoke'> }) =>
  async (doc: Device & StoredDoc & { readonly state: 'forgotten' }, ctx: Context) => {
    await users.revoke(userNameOf(doc._id), { signal: ctx.signal })
    return forget(doc)
  }
