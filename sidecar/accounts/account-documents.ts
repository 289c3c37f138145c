import type { DbName } from './account-names.ts'
import type { Address } from './owner.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'

/** A user: one address, its devices and its channels. In the control database. */
export interface Account extends Doc {
  readonly type: 'account'
  /** Normalised (`normaliseAddress`). */
  readonly address: Address
  /** Role that all devices of the account share. */
  readonly owner_role: string
  /** Random id of the user, given once, in state `new`. */
  readonly user_id?: string
  /** Name of the user's control database, once the database exists. */
  readonly database?: DbName
  /** Ids of all current device documents, and possibly of some that no longer count. */
  readonly devices: readonly string[]
  /** Ids of all current channel records, and possibly of some that no longer count. */
  readonly channels: readonly string[]
  /** Number of other users' channels whose invitation the user has answered. Present only if the user has many. */
  readonly answered?: number
  /** Archived databases of channels that this user owned and closed. */
  readonly archived?: readonly DbName[]
}

export type StoredAccount = Account & StoredDoc

/** The account of a database: `database:userdb-…` in the control database, written before the database is made. */
export interface Ownership extends Doc {
  readonly type: 'user_database'
  /** Id of the account. */
  readonly account: string
}
