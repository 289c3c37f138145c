import type { Accounts } from '../../accounts/accounts.ts'
import type { Clock } from '../../core/clock.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { giveBackQuota, takeQuota } from '../../accounts/hourly-quota.ts'
import { mailboxHashOf } from '../../accounts/owner.ts'
import { forget } from '../../docstate/handler-options.ts'
import type { Context } from '../../docstate/types.ts'
import type { Templates } from '../../mail/templates.ts'
import { isMember, isOpen, isRecord, type Invitation } from '../channel-documents.ts'

export interface InvitationOptions {
  readonly accounts: Accounts
  readonly templates: Templates
  readonly clock: Clock
  /** The most mails within an hour by which one owner invites. */
  readonly invitesPerOwner: number
}

/** Of all owners together, to one address within an hour. */
const MOST_TO_ONE = 3

/**
 * invitation new → sent: one mail to a user who has no device yet; needless if they have one now, or are no member. Where
 * there is no room for it within this hour it waits, and is as new after that: that is no try that has failed.
 */
export const mailInvitation = (options: InvitationOptions) => async (doc: Invitation & StoredDoc, ctx: Context) => {
  const { owner, member, channel } = doc
  if (!(await isWanted(doc, ctx, options))) return { ...doc, state: 'needless' as const }
  if (!(await takePlaces(doc, ctx, options))) return { ...doc, state: 'waiting' as const }
  await ctx.mail.send({ to: member, ...options.templates.invite({ owner, member, channel }) })
  return { ...doc, state: 'sent' as const }
}

/**
 * invitation over → sent, for another month, or deleted: while its member might still come, it says that the mail was sent,
 * so that there is no second one.
 */
export const keepInvitation =
  (options: Pick<InvitationOptions, 'accounts'>) =>
  async (doc: Invitation & StoredDoc & { readonly state: 'over' }, ctx: Context) =>
    (await isWanted(doc, ctx, options)) ? { ...doc, state: 'sent' as const } : forget(doc)

/** Its member has no device yet, and the channel is there for him. */
async function isWanted(
  { record: id, member }: Invitation,
  ctx: Context,
  { accounts }: Pick<InvitationOptions, 'accounts'>,
): Promise<boolean> {
  const record = await ctx.find(id)
  if (!isRecord(record) || !isOpen(record) || !isMember(record, member)) return false
  return (await accounts.find(member, { signal: ctx.signal }))?.database === undefined
}

/** One among its owner's, and one among those to this address: both, or none. Whose own are used up writes nothing. */
async function takePlaces({ _id, owner, member }: Invitation, ctx: Context, options: InvitationOptions) {
  const now = options.clock.now()
  const [to, by] = [`invitations:to-${mailboxHashOf(member)}`, `invitations:by-${mailboxHashOf(owner)}`]
  if (!(await takeQuota(ctx, by, _id, options.invitesPerOwner, now))) return false
  if (await takeQuota(ctx, to, _id, MOST_TO_ONE, now)) return true
  await giveBackQuota(ctx, by, _id, now)
  return false
}
