import type { Accounts } from '../../accounts/accounts.ts'
import type { Clock } from '../../core/clock.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { takeAll } from '../../devices/mail-ledger.ts'
import { ownerHashOf } from '../../devices/names.ts'
import type { Channel, ChannelRecord } from '../documents.ts'
import { membersOf } from '../shape.ts'

/** Addresses of which nobody has heard: each becomes an account, and an invitation, whoever it belongs to. */
export interface Newcomers {
  /** Lets all of these addresses in, or none, if this owner has named too many new ones within the hour. Twice is once. */
  admit(owner: string, addresses: readonly string[], options: CallOptions): Promise<boolean>
}

export interface NewcomersOptions {
  readonly accounts: Pick<Accounts, 'unknown'>
  readonly control: Database
  readonly clock: Clock
}

/** As many as one channel has members at most. */
export const MOST_NEW = 250

export const createNewcomers = ({ accounts, control, clock }: NewcomersOptions): Newcomers => ({
  async admit(owner, addresses, options) {
    const unknown = await accounts.unknown(addresses, options)
    if (unknown.length === 0) return true
    const documents = {
      find: (id: string) => control.find(id, {}, options),
      put: (doc: Doc) => control.put(doc, options),
    }
    const keys = unknown.map(ownerHashOf)
    return takeAll(documents, `invitations:new-${ownerHashOf(owner)}`, keys, MOST_NEW, clock.now())
  },
})

/** Members whom its record does not know. */
export const namedAnew = (record: Pick<ChannelRecord, 'members'> | undefined, wish: Channel): readonly string[] =>
  membersOf(wish).filter((address) => !record?.members.includes(address))
