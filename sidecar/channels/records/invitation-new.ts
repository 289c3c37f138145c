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
  /** Maximum number of invitation mails of one owner within an hour. */
  readonly invitesPerOwner: number
}

/** Maximum number of invitation mails to one address within an hour, of all owners together. */
const MOST_TO_ONE = 3

/**
 * invitation new → sent: sends one mail to a user who has no device yet. → needless: the user has a device now, or is
 * no member. → waiting: a quota of this hour is used up. The invitation becomes `new` again; no try has failed.
 */
export const mailInvitation = (options: InvitationOptions) => async (doc: Invitation & StoredDoc, ctx: Context) => {
  const { owner, member, channel } = doc
  if (!(await isWanted(doc, ctx, options))) return { ...doc, state: 'needless' as const }
  if (!(await takePlaces(doc, ctx, options))) return { ...doc, state: 'waiting' as const }
  await ctx.mail.send({ to: member, ...options.templates.invite({ owner, member, channel }) })
  return { ...doc, state: 'sent' as const }
}

/**
 * invitation over → sent, for another month, or deleted. While the member may still register, the document records that
 * the mail was sent. This prevents a second mail.
 */
export const keepInvitation =
  (options: Pick<InvitationOptions, 'accounts'>) =>
  async (doc: Invitation & StoredDoc & { readonly state: 'over' }, ctx: Context) =>
    (await isWanted(doc, ctx, options)) ? { ...doc, state: 'sent' as const } : forget(doc)

/** True if the member has no device yet, and is a member of the open channel. */
async function isWanted(
  { record: id, member }: Invitation,
  ctx: Context,
  { accounts }: Pick<InvitationOptions, 'accounts'>,
): Promise<boolean> {
  const record = await ctx.find(id)
  if (!isRecord(record) || !isOpen(record) || !isMember(record, member)) return false
  return (await accounts.find(member, { signal: ctx.signal }))?.database === undefined
}

/** Takes a mail from the owner's and the address's quota: both or none. Writes nothing if the owner's is used up. */
async function takePlaces({ _id, owner, member }: Invitation, ctx: Context, options: InvitationOptions) {
  const now = options.clock.now()
  const [to, by] = [`invitations:to-${mailboxHashOf(member)}`, `invitations:by-${mailboxHashOf(owner)}`]
  if (!(await takeQuota(ctx, by, _id, options.invitesPerOwner, now))) return false
  if (await takeQuota(ctx, to, _id, MOST_TO_ONE, now)) return true
  await giveBackQuota(ctx, by, _id, now)
  return false
}
