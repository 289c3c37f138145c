import { isoTime, type Clock } from '../core/clock.ts'
import { Reject, SidecarError } from '../core/errors.ts'
import type { Context } from '../docstate/types.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isSurelyUnsent } from '../mail/failure.ts'
import type { Templates } from '../mail/templates.ts'
import { deviceFaults } from '../../ddocs/lib/device.ts'
import { hashCode, newCode } from './codes.ts'
import { sentCodes, type Device, type SentCode } from './device-documents.ts'
import { isExhausted, readTriedCodes, tooManyAttempts } from './attempt-limit.ts'
import { takeMailQuota } from '../accounts/hourly-quota.ts'
import { normaliseAddress, ownerRoleOf } from '../accounts/owner.ts'

export interface MailOptions {
  readonly templates: Templates
  readonly clock: Clock
  /** Base URL of the links, without a trailing slash. */
  readonly publicUrl: string
  readonly confirmExpiryMs: number
  readonly mailsPerOwner: number
}

/** Number of mails whose links stay valid until they expire: users click the first mail after requesting a second. */
const MAILS_KEPT = 5

/**
 * device new → confirming: sends one mail to the owner. The code's hash is saved before the mail is sent, so the link
 * of any mail that arrives works. Only the mail has the code itself. A mail that was surely not sent leaves no code. A
 * mail that may have been accepted leaves its code, and counts: the owner may have received it.
 */
export const mailOwner =
  ({ templates, clock, publicUrl, confirmExpiryMs, mailsPerOwner }: MailOptions) =>
  async (doc: Device & StoredDoc, ctx: Context) => {
    const faults = deviceFaults(doc)
    if (faults.length > 0) throw new Reject('bad_device', faults.join('; '))
    const now = clock.now()
    const guesses = await readTriedCodes(ctx, doc._id, now)
    if (isExhausted(guesses, doc.device_code)) {
      const { code, reason } = tooManyAttempts(guesses)
      throw new Reject(code, reason)
    }
    const { key } = ctx
    const owner = normaliseAddress(doc.owner)
    const before = goodCodes(doc, now)
    await takeMailOrEnd(ctx, { owner, by: doc.inbox?.by, before, mailsPerOwner, now })

    const code = newCode()
    const codes = ofLastMails([...before, { hash: hashCode(code), expires_at: isoTime(now + confirmExpiryMs), key }])
    const { error: _error, ...rest } = doc as typeof doc & { error?: unknown }
    const device = { ...rest, owner, owner_role: ownerRoleOf(owner) }
    await ctx.save({ ...device, state: 'new', confirmation: { codes } })

    const link = `${publicUrl}/confirm/${encodeURIComponent(doc._id)}/${code}`
    const values = { name: doc.name ?? 'A device', link, expires_in: inWords(confirmExpiryMs), owner }
    try {
      await ctx.mail.send({ to: owner, ...templates.confirm(values) })
    } catch (thrown) {
      if (isSurelyUnsent(thrown)) await ctx.save({ ...device, state: 'new', confirmation: { codes: before } })
      throw thrown
    }
    return { ...device, state: 'confirming' as const, confirmation: { codes } }
  }

/** Valid codes of earlier mails. If one confirmed the device, which failed after that, all of them are used up. */
const goodCodes = (device: Device, now: number): SentCode[] =>
  device.confirmation?.confirmed_by === undefined
    ? sentCodes(device).filter(({ expires_at }) => Date.parse(expires_at) > now)
    : []

/** Codes of the last mails. All tries of one mail count as one: a recipient may see only the first of a Message-ID. */
function ofLastMails(codes: readonly SentCode[]): readonly SentCode[] {
  const mailOf = ({ key, hash }: SentCode) => key ?? hash
  const last = [...new Set(codes.map(mailOf))].slice(-MAILS_KEPT)
  return codes.filter((code) => last.includes(mailOf(code)))
}

interface Wanted {
  readonly owner: string
  readonly by: string | undefined
  readonly before: readonly SentCode[]
  readonly mailsPerOwner: number
  readonly now: number
}

/** Takes one mail from this hour's quota, and another one if an earlier try may have been sent. */
async function takeMailOrEnd(ctx: Context, { owner, by, before, mailsPerOwner, now }: Wanted): Promise<void> {
  const perhapsSent = before.filter(({ key }) => key === ctx.key).length
  const key = perhapsSent === 0 ? ctx.key : `${ctx.key}/${perhapsSent}`
  if (await takeMailQuota(ctx, { owner, key, by }, mailsPerOwner, now)) return
  const many = `one address gets at most ${mailsPerOwner} mails an hour`
  // The first try was within the quota: the mail is retried until it is known to be sent.
  if (perhapsSent > 0) throw new SidecarError('too_many_mails', `${many}; retried later`)
  throw new Reject('too_many_mails', `${many}; try again later`)
}

/** A duration in words: `24 hours`, `30 minutes`. */
export function inWords(ms: number): string {
  const [amount, unit] =
    ms >= 7_200_000 ? [ms / 3_600_000, 'hour'] : ms >= 120_000 ? [ms / 60_000, 'minute'] : [ms / 1000, 'second']
  const rounded = Math.round(amount)
  return `${rounded} ${unit}${rounded === 1 ? '' : 's'}`
}
