import { isCouchError } from '../../couch/couch-errors.ts'
import type { Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import { userNameOf } from '../../devices/device-names.ts'
import type { Context } from '../../docstate/types.ts'

/** The copy of a device's document, under the name of its CouchDB user. */
export interface DeviceCopy extends Doc {
  readonly type: 'device'
}

export interface RevokingOptions {
  readonly control: Database
  readonly accounts: Pick<Accounts, 'ofDatabase'>
}

/**
 * device revoked (in a user's database): sets the device's own document to `revoked`; its handler ends the access. The
 * control database names the account, and the copy's id names the device. Fields of the copy are not trusted.
 */
export const revokeDevice =
  ({ control, accounts }: RevokingOptions) =>
  async ({ _id }: DeviceCopy & StoredDoc, ctx: Context): Promise<void> => {
    const options = { signal: ctx.signal }
    const account = await accounts.ofDatabase(ctx.database, options)
    const id = account?.devices.find((id) => userNameOf(id) === _id)
    const device = id === undefined ? undefined : await control.find(id, {}, options)
    if (device?.type !== 'device' || device.state === 'revoked') return
    const { docstate: _entry, error: _error, ...fields } = device
    try {
      await control.put({ ...fields, state: 'revoked' }, options)
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown
      throw new Error(`the device ${id} has changed in the meantime`, { cause: thrown }) // the next try reads it again
    }
  }
