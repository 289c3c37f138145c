import { isCouchError } from '../../couch/errors.ts'
import type { Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import type { Context } from '../../docstate/types.ts'

/** The copy of a device's document, under the name of its CouchDB user. */
export interface DeviceCopy extends Doc {
  readonly type: 'device'
  /** Of the document in the control database. */
  readonly device_id: string
}

export interface RevokingOptions {
  readonly control: Database
  readonly accounts: Pick<Accounts, 'ofDatabase'>
}

/**
 * device revoked (in a user's database): the device's own document says so, and its handler takes the access away. Whose
 * the database is, the control database says, not what stands in it.
 */
export const revokeDevice =
  ({ control, accounts }: RevokingOptions) =>
  async ({ device_id }: DeviceCopy & StoredDoc, ctx: Context): Promise<void> => {
    const options = { signal: ctx.signal }
    const device = await control.find(device_id, {}, options)
    const account = await accounts.ofDatabase(ctx.database, options)
    const isTheirs = device?.type === 'device' && account !== undefined && device.owner_role === account.owner_role
    if (!isTheirs || device.state === 'revoked') return
    const { docstate: _entry, error: _error, ...fields } = device
    try {
      await control.put({ ...fields, state: 'revoked' }, options)
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown
      throw new Error(`the device ${device_id} has changed meanwhile`, { cause: thrown }) // and is looked at again
    }
  }
