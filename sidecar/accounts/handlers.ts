import type { StoredDoc } from '../couch/documents.ts'
import { quote } from '../../ddocs/lib/document.ts'
import { Reject } from '../core/errors.ts'
import type { Device } from '../devices/documents.ts'
import type { Resolver } from '../docstate/conflicts/merge.ts'
import type { Context } from '../docstate/types.ts'
import type { Accounts } from './accounts.ts'
import type { Account, StoredAccount } from './documents.ts'
import { newUserId } from './names.ts'

/** device active: its owner's account knows of it, and is looked at. */
export const joinAccount =
  ({ accounts }: { readonly accounts: Accounts }) =>
  async (device: Device & StoredDoc, ctx: Context): Promise<void> => {
    const owner: unknown = device.owner // an admin may have written it
    if (typeof owner !== 'string')
      throw new Reject('bad_device', `owner: expected an email address, got ${quote(owner)}`)
    await accounts.tell(device.owner, { device: device._id }, { signal: ctx.signal })
  }

/** account new → changed: the user's id. By one worker alone: the name of a database follows from it. */
export const giveUserId =
  ({ controlDb }: { readonly controlDb: string }) =>
  async (account: StoredAccount) => {
    const user_id = account.user_id ?? newUserId(controlDb)
    return { ...account, user_id, state: 'changed' as const }
  }

/** Two accounts of one address that a cluster has taken both: all devices and channels of either, looked at again. */
export const mergeAccount: Resolver = ({ ours, theirs }) => {
  const [one, other] = [ours, theirs] as unknown as [Account, Account]
  const database = one.database ?? other.database
  const user_id =
    (one.database !== undefined ? one.user_id : other.database && other.user_id) ?? one.user_id ?? other.user_id
  const archived = [...(one.archived ?? []), ...(other.archived ?? [])]
  return {
    ...one,
    ...(user_id !== undefined && { user_id }),
    ...(database !== undefined && { database }),
    state: user_id === undefined ? 'new' : 'changed',
    devices: [...new Set([...one.devices, ...other.devices])],
    channels: [...new Set([...one.channels, ...other.channels])],
    ...(archived.length > 0 && { archived: [...new Set(archived)] }),
  }
}
