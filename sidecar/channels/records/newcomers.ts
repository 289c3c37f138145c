import type { Accounts } from '../../accounts/accounts.ts'
import type { StoredAccount } from '../../accounts/account-documents.ts'
import type { Clock } from '../../core/clock.ts'
import type { Failure } from '../../core/errors.ts'
import { createMutexByKey } from '../../core/mutex.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc } from '../../couch/documents.ts'
import { takeQuotas } from '../../accounts/hourly-quota.ts'
import { mailboxHashOf, ownerHashOf, type Address } from '../../accounts/owner.ts'
import { isMember, isOpen, type Channel, type ChannelRecord } from '../channel-documents.ts'
import { membersOf } from '../shape.ts'
import type { Records } from './records.ts'

/** Limits the new members that an owner may name. */
export interface Newcomers {
  /** Returns why none of these addresses may become a member; undefined if all may. A repeated call counts once. */
  refusal(owner: Address, addresses: readonly Address[], options: CallOptions): Promise<Failure | undefined>
}

export interface NewcomersOptions {
  readonly accounts: Pick<Accounts, 'among'>
  readonly records: Pick<Records, 'among'>
  readonly control: Database
  readonly clock: Clock
}

/**
 * Maximum number of addresses that one owner names within an hour: as many as one channel has members. Each address
 * becomes an account and an invitation. Addresses with an account count too, or the limit would reveal which have one.
 */
const MOST_NAMED = 250
/** Maximum open channels of one user: each is a role of each device, and CouchDB reads the roles on each request. */
const MOST_CHANNELS = 1000

export function createNewcomers({ accounts, records, control, clock }: NewcomersOptions): Newcomers {
  const mutex = createMutexByKey() // a device that was offline brings many requests at once
  async function isFull({ address, channels, answered }: StoredAccount, options: CallOptions): Promise<boolean> {
    if (channels.length < MOST_CHANNELS) return false
    if (answered !== undefined) return answered >= MOST_CHANNELS // unanswered invitations of strangers do not count
    const found = await records.among(channels, options) // some channels may be over
    return found.filter((record) => isOpen(record) && isMember(record, address)).length >= MOST_CHANNELS
  }

  function isRoomFor(addresses: readonly Address[], owner: Address, options: CallOptions): Promise<boolean> {
    const documents = {
      find: (id: string) => control.find(id, {}, options),
      put: (doc: Doc) => control.put(doc, options),
    }
    const ledger = `invitations:new-${mailboxHashOf(owner)}`
    const keys = addresses.map(ownerHashOf)
    return mutex(ledger, () => takeQuotas(documents, ledger, keys, MOST_NAMED, clock.now()))
  }

  return {
    async refusal(owner, addresses, options) {
      if (addresses.length === 0) return undefined
      if (!(await isRoomFor(addresses, owner, options)))
        return no('too_many_invitations', `expected at most ${MOST_NAMED} others within an hour; try again later`)
      for (const account of await accounts.among(addresses, options)) {
        if (await isFull(account, options))
          return no('member_full', `${account.address} is a member of ${MOST_CHANNELS} channels, which is the maximum`)
      }
      return undefined
    },
  }
}

const no = (code: string, reason: string): Failure => ({ code, reason: `members: ${reason}` })

/** Requested members that the channel's record does not have. */
export const namedAnew = (record: Pick<ChannelRecord, 'members'> | undefined, request: Channel): readonly Address[] =>
  membersOf(request).filter((address) => !record?.members.includes(address))
