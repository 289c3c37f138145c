import type { CallOptions } from '../couch/database.ts'
import type { Accounts } from './accounts.ts'
import { syncpointOf } from './names.ts'

/** Where a device finds its user's documents. */
export interface Home {
  readonly database: string
  readonly syncpoint: string
}

/** The control database of an owner, as soon as it is there and told. Throws `CouchError`. */
export const findHome =
  (accounts: Pick<Accounts, 'find'>, syncUrl: string) =>
  async (owner: string, options: CallOptions): Promise<Home | undefined> => {
    const database = (await accounts.find(owner, options))?.database
    return database === undefined ? undefined : { database, syncpoint: syncpointOf(syncUrl, database) }
  }
