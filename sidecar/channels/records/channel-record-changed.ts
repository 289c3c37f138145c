import type { Accounts } from '../../accounts/accounts.ts'
import type { Address } from '../../accounts/owner.ts'
import { SidecarError } from '../../core/errors.ts'
import type { Couch } from '../../couch/client.ts'
import type { CallOptions } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import type { Context } from '../../docstate/types.ts'
import {
  isChangedTwice,
  type Channel,
  type ChannelRecord,
  type Invitation,
  type StoredRecord,
} from '../channel-documents.ts'
import { invitationIdOf, normaliseName } from '../channel-names.ts'
import { channelFaults, isAsRequested, membersOf } from '../shape.ts'
import { namedAnew, type Newcomers } from './newcomers.ts'
import { notifyAccounts } from './notify-accounts.ts'

export interface MembersOptions {
  readonly couch: Couch
  readonly accounts: Accounts
  readonly newcomers: Newcomers
}

/**
 * channel_record changed → ready: takes the members from the owner's document. Notifies members and former members, and
 * invites members without a device by mail. The record is saved before any account is notified.
 */
export const notifyMembers =
  ({ couch, accounts, newcomers }: MembersOptions) =>
  async (record: StoredRecord, ctx: Context) => {
    const options = { signal: ctx.signal }
    const request = requestFrom(await couch.db(record.user_database).find(record.document, {}, options), record)
    const isFollowed =
      request && !isAsRequested(record, request) && (await mayJoin(newcomers, record, request, options))
    const now = isFollowed ? await ctx.save(asRequested(record, request)) : record
    for (const { database, address } of await notifyAccounts(accounts, now, options)) {
      if (database === undefined) await invite(now, address, ctx)
    }
    return { ...now, state: 'ready' as const, former: [] }
  }

/** Whether all requested members may join. A request in `new` gets the refusal from its own handler. */
async function mayJoin(newcomers: Newcomers, record: ChannelRecord, request: Channel, options: CallOptions) {
  const refusal = await newcomers.refusal(record.owner, namedAnew(record, request), options)
  if (!refusal) return true
  if (request.state === 'new') return false
  throw new SidecarError(refusal.code, `${refusal.reason}; retried later`)
}

const REQUESTED = ['new', 'accepted', 'ready']

/** The owner's request; undefined if the document names no valid members: then the members stay as they are. */
function requestFrom(doc: StoredDoc | undefined, { name }: ChannelRecord): (Channel & StoredDoc) | undefined {
  const isRequest = doc?.type === 'channel' && (REQUESTED.includes(String(doc.state)) || isChangedTwice(doc))
  if (!isRequest || channelFaults(doc).length > 0) return undefined
  const request = doc as Channel & StoredDoc
  return normaliseName(request.name) === name ? request : undefined
}

function asRequested({ data: _data, ...record }: StoredRecord, request: Channel): ChannelRecord & { state: 'changed' } {
  const members = membersOf(request)
  const gone = [...record.former, ...record.members].filter((address) => !members.includes(address))
  const { data } = request
  return { ...(record as StoredRecord), state: 'changed', members, former: [...new Set(gone)], ...(data && { data }) }
}

/** States of an invitation whose mail was not and will not be sent: its user was no member then, or sending failed. */
const UNSENT = ['needless', 'error']

async function invite(
  { _id: record, database, name, owner }: ChannelRecord,
  member: Address,
  ctx: Context,
): Promise<void> {
  const _id = invitationIdOf(database, member)
  const current = await ctx.find(_id)
  if (current && !UNSENT.includes(String(current.state))) return
  const invitation: Invitation = { _id, type: 'invitation', state: 'new', record, member, owner, channel: name }
  try {
    await ctx.put({ ...invitation, ...(current && { _rev: current._rev }) })
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // another worker made the invitation
  }
}
