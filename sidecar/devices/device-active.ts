import { quote } from '../../ddocs/lib/document.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { normaliseAddress } from '../accounts/owner.ts'
import { Reject } from '../core/errors.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Context } from '../docstate/types.ts'
import type { Device } from './device-documents.ts'

/** device active: adds the device to its owner's account, and has the account reconciled. */
export const joinAccount =
  ({ accounts }: { readonly accounts: Pick<Accounts, 'notify'> }) =>
  async (device: Device & StoredDoc, ctx: Context): Promise<void> => {
    const owner: unknown = device.owner // an admin may have written any value
    if (typeof owner !== 'string')
      throw new Reject('bad_device', `owner: expected an email address, got ${quote(owner)}`)
    await accounts.notify(normaliseAddress(owner), { device: device._id }, { signal: ctx.signal })
  }
