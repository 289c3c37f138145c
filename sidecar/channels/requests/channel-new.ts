import { nameFaults } from '../../../ddocs/lib/name.ts'
import { Reject } from '../../core/errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import type { StoredAccount } from '../../accounts/account-documents.ts'
import type { DbName } from '../../accounts/account-names.ts'
import { normaliseAddress } from '../../accounts/owner.ts'
import type { Context } from '../../docstate/types.ts'
import type { Channel, ChannelRecord, StoredRecord } from '../channel-documents.ts'
import { isToNotify } from '../ending.ts'
import { databaseNameOf, normaliseName, recordIdOf } from '../channel-names.ts'
import type { Records } from '../records/records.ts'
import { type Newcomers, namedAnew } from '../records/newcomers.ts'
import { channelFaults, membersOf } from '../shape.ts'
import type { Couch } from '../../couch/client.ts'
import { readDatabases } from '../../couch/survey.ts'

export interface AcceptOptions extends Limits {
  readonly accounts: Accounts
  readonly records: Records
  readonly newcomers: Newcomers
}

/**
 * channel new → accepted (in a user's database): makes the channel's record, or has the record read this document
 * again. The account's handler makes the document `ready` when the channel is complete. The account gets the record's
 * id before the record is made, so that one document never has two records.
 */
export const acceptChannel = (all: AcceptOptions) => async (doc: Channel & StoredDoc, ctx: Context) => {
  const { accounts, records, newcomers } = all
  const faults = channelFaults(doc)
  if (faults.length > 0) throw new Reject('bad_channel', faults.join('; '))
  const options = { signal: ctx.signal }
  const owner = await ownerOf(doc, ctx, accounts)
  const id = recordIdOf(owner.user_id!, doc.name)

  async function next(record: StoredRecord | undefined): Promise<ChannelRecord | undefined> {
    if ((await ctx.find(doc._id))?._rev !== doc._rev) return undefined // the later revision has its own attempt
    const again = record && record.state !== 'closed' ? lookedAtAgain(record, doc) : undefined
    if (!again) {
      refuseName(doc)
      await refuseUnfit(await ownerOf(doc, ctx, accounts)) // before anything is written
    }
    await refuseCrowd(newcomers, record, doc, owner, ctx.signal)
    if (again) return again
    if (record) await requireNotified(record, doc, ctx)
    const account = await accounts.notify(owner.address, { channel: id }, options)
    await refuseUnfit(account)
    return newLife(doc, account, ctx.database as DbName, record, id) // `ownerOf` found the owner by this name
  }

  async function refuseUnfit(account: StoredAccount): Promise<void> {
    const others = account.channels.filter((channel) => channel !== id) // the record may exist by now
    const found = await records.among(others, options)
    const own = found.filter(({ owner, state }) => owner === account.address && state !== 'closed')
    refuseRenamed(doc, own)
    await refuseTooMany(all, own, account, ctx.signal)
  }

  await records.write(id, next, options)
  return { ...doc, state: 'accepted' as const }
}

function lookedAtAgain(record: StoredRecord, { _id, name }: Channel): ChannelRecord {
  if (record.document !== _id) {
    throw new Reject('name_taken', `you have a channel called ${JSON.stringify(name)}: ${record.document}`)
  }
  if (record.state === 'closing') throw new Error('the channel is being closed; you can create it again after that')
  return { ...record, state: record.state === 'new' ? 'new' : 'changed' }
}

/** Throws while the record's earlier document does not show its end: the record updates one document only. */
async function requireNotified(record: StoredRecord, { _id }: Channel, ctx: Context): Promise<void> {
  const before = record.document === _id ? undefined : await ctx.find(record.document)
  if (before?.type === 'channel' && isToNotify(before, record))
    throw new Error(`the channel ${before._id} is being closed; another channel can use its name after that`)
}

/** Refuses an unsafe name: invitation mails show the name. */
function refuseName(doc: Channel): void {
  const faults = nameFaults(doc, 'name', 100)
  if (faults.length > 0) throw new Reject('bad_channel', faults.join('; '))
}

/** Refuses a changed name: the record is found by the name. */
function refuseRenamed(doc: Channel, own: readonly StoredRecord[]): void {
  const before = own.find(({ document }) => document === doc._id)
  if (!before) return
  const [expected, got] = [before.name, doc.name].map((name) => JSON.stringify(name))
  throw new Reject('renamed', `name: expected ${expected} unchanged, got ${got}; close the channel and create another`)
}

/** Finds the owner's account by the database: only that user's devices write to it. Throws `Reject`. */
export async function ownerOf(doc: Channel, ctx: Context, accounts: Accounts): Promise<StoredAccount> {
  const account = await accounts.ofDatabase(ctx.database, { signal: ctx.signal })
  if (account?.user_id === undefined) throw new Reject('no_account', `${ctx.database} is not the database of a user`)
  if (normaliseAddress(doc.owner) === account.address) return account
  throw new Reject('not_yours', `owner: expected ${account.address}, got ${doc.owner}`)
}

/** Maximum number of ended lives in a record: so many may begin and end while one worker is late. */
const ENDED = 100

function newLife(
  doc: Channel,
  account: StoredAccount,
  userDatabase: DbName,
  before: StoredRecord | undefined,
  _id: string,
): ChannelRecord {
  const life = (before?.life ?? 0) + 1
  const database = databaseNameOf(account.user_id!, doc.name, life)
  const members = membersOf(doc)
  const former = [...(before?.former ?? []), ...(before?.members ?? [])].filter((one) => !members.includes(one))
  return {
    ...{ _id, type: 'channel_record', state: 'new', name: normaliseName(doc.name), life, database, role: database },
    ...{ owner: account.address, owner_role: account.owner_role, user_database: userDatabase, document: doc._id },
    ...{ members, former: [...new Set(former)], ...(doc.data && { data: doc.data }) },
    ...(before?.left && { left: before.left }),
    ...(before && {
      ended: [...(before.ended ?? []), { database: before.database, close: before.close ?? 'archive' }].slice(-ENDED),
    }),
  }
}

interface Limits {
  readonly couch: Couch
  /** Maximum number of channel databases of one owner. */
  readonly channelsPerOwner: number
}

/** Counts open channels, and archived databases that still exist: only an admin deletes them. */
async function refuseTooMany(
  { couch, channelsPerOwner: most }: Limits,
  open: readonly StoredRecord[],
  { archived = [] }: StoredAccount,
  signal: AbortSignal,
): Promise<void> {
  if (open.length + archived.length < most) return
  let kept = 0
  for await (const some of readDatabases(couch, archived, signal)) kept += some.size
  if (open.length + kept < most) return
  throw new Reject('too_many_channels', `an owner may have ${most} channels, including ${kept} that are archived`)
}

/** Refuses too many new addresses: thousands are an attack on their mailboxes and on the control database. */
async function refuseCrowd(
  newcomers: Newcomers,
  record: ChannelRecord | undefined,
  request: Channel,
  { address }: StoredAccount,
  signal: AbortSignal,
): Promise<void> {
  const refusal = await newcomers.refusal(address, namedAnew(record, request), { signal })
  if (refusal) throw new Reject(refusal.code, refusal.reason)
}
