import type { DbName } from './account-names.ts'
import type { Address } from './owner.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'

/** A person: one address, the devices, the channels. In the control database. */
export interface Account extends Doc {
  readonly type: 'account'
  /** In one spelling (`normaliseAddress`). */
  readonly address: Address
  /** Of all its devices. */
  readonly owner_role: string
  /** Random. Given once, in state `new`. */
  readonly user_id?: string
  /** Its control database, as soon as that is there. */
  readonly database?: DbName
  /** Ids of device documents: those that count, and perhaps some that do not any more. */
  readonly devices: readonly string[]
  /** Ids of channel records: the same. */
  readonly channels: readonly string[]
  /** How many channels of others its user has taken, where there are many. */
  readonly answered?: number
  /** Databases of channels that this user has had and closed, which were kept. */
  readonly archived?: readonly DbName[]
}

export type StoredAccount = Account & StoredDoc

/** Whose a database is: `database:userdb-…` in the control database, written before the database is made. */
export interface Ownership extends Doc {
  readonly type: 'user_database'
  /** Id of the account. */
  readonly account: string
}
