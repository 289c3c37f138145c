import type { Accounts } from '../../accounts/accounts.ts'
import type { StoredAccount } from '../../accounts/documents.ts'
import type { Clock } from '../../core/clock.ts'
import type { Failure } from '../../core/errors.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { takeAll } from '../../devices/mail-ledger.ts'
import { ownerHashOf } from '../../devices/names.ts'
import { isMember, isOpen, type Channel, type ChannelRecord } from '../documents.ts'
import { membersOf } from '../shape.ts'
import type { Records } from './records.ts'

/** Whom an owner may name as a member who was none. */
export interface Newcomers {
  /** Why not all of these addresses may be members, which then none is; undefined if they may. Asking twice counts once. */
  refusal(owner: string, addresses: readonly string[], options: CallOptions): Promise<Failure | undefined>
}

export interface NewcomersOptions {
  readonly accounts: Pick<Accounts, 'among'>
  readonly records: Pick<Records, 'among'>
  readonly control: Database
  readonly clock: Clock
}

/**
 * Addresses of which nobody has heard, by one owner within an hour: as many as one channel has members. Each becomes an
 * account and an invitation, whoever it belongs to.
 */
const MOST_NEW = 250
/** Channels that are open, of one user: each is a role of each of his devices, which CouchDB reads with each request. */
const MOST_CHANNELS = 1000

export function createNewcomers({ accounts, records, control, clock }: NewcomersOptions): Newcomers {
  async function isFull({ address, channels }: StoredAccount, options: CallOptions): Promise<boolean> {
    if (channels.length < MOST_CHANNELS) return false
    const found = await records.among(channels, options) // some may be over
    return found.filter((record) => isOpen(record) && isMember(record, address)).length >= MOST_CHANNELS
  }

  function isRoomFor(unknown: readonly string[], owner: string, options: CallOptions): Promise<boolean> {
    const documents = {
      find: (id: string) => control.find(id, {}, options),
      put: (doc: Doc) => control.put(doc, options),
    }
    return takeAll(documents, `invitations:new-${ownerHashOf(owner)}`, unknown.map(ownerHashOf), MOST_NEW, clock.now())
  }

  return {
    async refusal(owner, addresses, options) {
      const known = await accounts.among(addresses, options)
      for (const account of known) {
        if (await isFull(account, options))
          return no('member_full', `${account.address} is a member of ${MOST_CHANNELS} channels, and may be of no more`)
      }
      const unknown = addresses.filter((address) => !known.some((account) => account.address === address))
      if (unknown.length === 0 || (await isRoomFor(unknown, owner, options))) return undefined
      const most = `expected no more than ${MOST_NEW} addresses within an hour that are new here`
      return no('too_many_invitations', `${most}; ask again later`)
    },
  }
}

const no = (code: string, reason: string): Failure => ({ code, reason: `members: ${reason}` })

/** Members whom its record does not know. */
export const namedAnew = (record: Pick<ChannelRecord, 'members'> | undefined, wish: Channel): readonly string[] =>
  membersOf(wish).filter((address) => !record?.members.includes(address))
