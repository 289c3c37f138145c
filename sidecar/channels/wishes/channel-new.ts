import { Reject } from '../../core/errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import type { StoredAccount } from '../../accounts/documents.ts'
import { normaliseAddress } from '../../devices/names.ts'
import type { Context } from '../../docstate/types.ts'
import type { Channel, ChannelRecord, StoredRecord } from '../documents.ts'
import { databaseNameOf, normaliseName, recordIdOf } from '../names.ts'
import type { Records } from '../records/records.ts'
import { channelFaults, membersOf } from '../shape.ts'

export interface WishOptions {
  readonly accounts: Accounts
  readonly records: Records
  /** The most open channels of one owner. */
  readonly channelsPerOwner: number
}

/**
 * channel new (in a user's database): the record of the channel is made, or told to look at this document again. It stays
 * `new` until all is there: the account's handler says so.
 */
export const takeWish =
  ({ accounts, records, channelsPerOwner }: WishOptions) =>
  async (doc: Channel & StoredDoc, ctx: Context): Promise<void> => {
    const faults = channelFaults(doc)
    if (faults.length > 0) throw new Reject('bad_channel', faults.join('; '))
    const account = await ownerOf(doc, ctx, accounts)
    const options = { signal: ctx.signal }
    const id = recordIdOf(account.user_id!, doc.name)

    async function next(record: StoredRecord | undefined): Promise<ChannelRecord | undefined> {
      if ((await ctx.find(doc._id))?._rev !== doc._rev) return undefined // whoever takes the later one sees to it
      const isOther = record && record.document !== doc._id
      if (record && isOther && record.state !== 'closed') {
        throw new Reject('name_taken', `you have a channel called ${JSON.stringify(doc.name)}: ${record.document}`)
      }
      if (record && record.state !== 'closed') {
        if (record.state === 'closing') throw new Error('the channel is being closed; it can be made again after that')
        return { ...record, state: record.state === 'new' ? 'new' : 'changed' }
      }
      await refuseTooMany(account, ctx)
      return newLife(doc, account, ctx.database, record, id)
    }

    async function refuseTooMany({ address, channels }: StoredAccount, ctx: Context): Promise<void> {
      const all = await Promise.all(channels.map((channel) => records.find(channel, { signal: ctx.signal })))
      const own = all.filter((record) => record?.owner === address && record.state !== 'closed')
      if (own.length < channelsPerOwner) return
      throw new Reject('too_many_channels', `an owner has ${channelsPerOwner} channels at most; close one of them`)
    }

    await records.write(id, next, options)
  }

/** Whoever writes in a user's database is that user. */
export async function ownerOf(doc: Channel, ctx: Context, accounts: Accounts): Promise<StoredAccount> {
  const account = await accounts.ofDatabase(ctx.database, { signal: ctx.signal })
  if (account?.user_id === undefined) throw new Reject('no_account', `${ctx.database} is not the database of a user`)
  if (normaliseAddress(doc.owner) === account.address) return account
  throw new Reject('not_yours', `owner: expected ${account.address}, got ${doc.owner}`)
}

function newLife(
  doc: Channel,
  account: StoredAccount,
  userDatabase: string,
  before: StoredRecord | undefined,
  _id: string,
): ChannelRecord {
  const life = (before?.life ?? 0) + 1
  const database = databaseNameOf(_id, life)
  const members = membersOf(doc)
  const former = [...(before?.former ?? []), ...(before?.members ?? [])].filter((one) => !members.includes(one))
  return {
    ...{ _id, type: 'channel_record', state: 'new', name: normaliseName(doc.name), life, database, role: database },
    ...{ owner: account.address, owner_role: account.owner_role, user_database: userDatabase, document: doc._id },
    ...{ members, former: [...new Set(former)] },
    ...(before && {
      ended: [...(before.ended ?? []), { database: before.database, close: before.close ?? 'archive' }],
    }),
  }
}
