import type { Accounts } from '../../accounts/accounts.ts'
import type { Clock } from '../../core/clock.ts'
import { SidecarError } from '../../core/errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { takeFrom } from '../../devices/mail-ledger.ts'
import { ownerHashOf } from '../../devices/names.ts'
import type { Context } from '../../docstate/types.ts'
import type { Templates } from '../../mail/templates.ts'
import { isMember, isOpen, isRecord, type Invitation } from '../documents.ts'

export interface InvitationOptions {
  readonly accounts: Accounts
  readonly templates: Templates
  readonly clock: Clock
  /** The most mails within an hour by which one owner invites. */
  readonly invitesPerOwner: number
}

/** Of all owners together, to one address within an hour. */
const MOST_TO_ONE = 3

/** invitation new → sent: one mail to somebody who has no device yet; needless if he has one now, or is no member. */
export const mailInvitation =
  ({ accounts, templates, clock, invitesPerOwner }: InvitationOptions) =>
  async (doc: Invitation & StoredDoc, ctx: Context) => {
    const { owner, member, channel, record: recordId } = doc
    const record = await ctx.find(recordId)
    const isWanted = isRecord(record) && isOpen(record) && isMember(record, member)
    const account = await accounts.find(member, { signal: ctx.signal })
    if (!isWanted || account?.database !== undefined) return { ...doc, state: 'needless' as const }

    const now = clock.now()
    const hasRoom =
      (await takeFrom(ctx, `invitations:by-${ownerHashOf(owner)}`, ctx.key, invitesPerOwner, now)) &&
      (await takeFrom(ctx, `invitations:to-${ownerHashOf(member)}`, ctx.key, MOST_TO_ONE, now))
    if (!hasRoom) throw new SidecarError('too_many_mails', 'too many invitations within this hour; looking again later')
    await ctx.mail.send({ to: member, ...templates.invite({ owner, member, channel }) })
    return { ...doc, state: 'sent' as const }
  }
