import type { Accounts } from '../../accounts/accounts.ts'
import type { Address } from '../../accounts/owner.ts'
import { Reject } from '../../core/errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import type { Context } from '../../docstate/types.ts'
import { isMember, isOpen, type StoredRecord, type Subscription } from '../channel-documents.ts'
import type { Records } from '../records/records.ts'
import { subscriptionFaults } from '../shape.ts'

export interface LeavingOptions {
  readonly accounts: Pick<Accounts, 'ofDatabase'>
  readonly records: Pick<Records, 'find' | 'write'>
}

/**
 * subscription left (in a user's database): ends the user's membership, even if the channel's owner names the user
 * again. Only the user can return (`comeBack`). An owner cannot leave the channel.
 */
export const leave =
  (options: LeavingOptions) =>
  async (doc: Subscription & StoredDoc, ctx: Context): Promise<void> => {
    const faults = subscriptionFaults(doc)
    if (faults.length > 0) throw new Reject('bad_subscription', faults.join('; '))
    if (!isOfAnother(doc))
      throw new Reject(
        'own_channel',
        'channel_id: expected a channel of another user’s; close your own channel instead',
      )
    await setLeft(doc, true, options, ctx)
  }

/** Lets a user who left return. True if the user is now a member of the open channel. */
export async function comeBack(doc: Subscription & StoredDoc, options: LeavingOptions, ctx: Context): Promise<boolean> {
  if (!isOfAnother(doc)) return false
  const address = await setLeft(doc, false, options, ctx)
  const record = await options.records.find(doc.channel_id, { signal: ctx.signal })
  return address !== undefined && record !== undefined && isOpen(record) && isMember(record, address)
}

/** True for a channel of another user: a member's copy has the `_id` of the record. */
const isOfAnother = ({ channel_id }: Subscription): boolean => channel_id.startsWith('channel:')

/** Writes into the record whether this user has left. Returns the user's address; undefined without an account. */
async function setLeft(
  doc: Subscription & StoredDoc,
  hasLeft: boolean,
  { accounts, records }: LeavingOptions,
  ctx: Context,
): Promise<Address | undefined> {
  const options = { signal: ctx.signal }
  const account = await accounts.ofDatabase(ctx.database, options)
  if (!account) return undefined
  const { address } = account

  async function next(record: StoredRecord | undefined) {
    if ((await ctx.find(doc._id))?._rev !== doc._rev) return undefined // the later revision has its own attempt
    const { left = [], ...known } = record ?? {}
    if (!record?.members.includes(address) || left.includes(address) === hasLeft) return undefined
    const others = left.filter((one) => one !== address)
    const now = hasLeft ? [...others, address].sort() : others
    const state = record.state === 'ready' || record.state === 'error' ? 'changed' : record.state
    return { ...(known as StoredRecord), state, ...(now.length > 0 && { left: now }) }
  }

  await records.write(doc.channel_id, next, options)
  return address
}
