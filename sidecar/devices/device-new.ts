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
  /** Base of the links, without a slash at its end. */
  readonly publicUrl: string
  readonly confirmExpiryMs: number
  readonly mailsPerOwner: number
}

/** Links of the last mails stay good until they expire: people click the first mail after asking for a second. */
const MAILS_KEPT = 5

/**
 * device new → confirming: one mail to the owner. The code's hash is saved before the mail goes, so that whichever
 * mail arrives, its link works; the code itself is nowhere but in the mail. What was surely not sent leaves no code; a
 * mail that may have been accepted does, and counts, since its owner may have got it.
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

/** The codes of earlier mails. One that has confirmed the device, which failed then, is used up, and all with it. */
const goodCodes = (device: Device, now: number): SentCode[] =>
  device.confirmation?.confirmed_by === undefined
    ? sentCodes(device).filter(({ expires_at }) => Date.parse(expires_at) > now)
    : []

/** Several tries of one mail count as one: the recipient may see only the first of those with one Message-ID. */
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

/** One place among the mails of this hour, and another one where an earlier try of this mail may have been sent. */
async function takeMailOrEnd(ctx: Context, { owner, by, before, mailsPerOwner, now }: Wanted): Promise<void> {
  const perhapsSent = before.filter(({ key }) => key === ctx.key).length
  const key = perhapsSent === 0 ? ctx.key : `${ctx.key}/${perhapsSent}`
  if (await takeMailQuota(ctx, { owner, key, by }, mailsPerOwner, now)) return
  const many = `no more than ${mailsPerOwner} mails an hour go to one address`
  // A mail that was asked for in time is tried until it is known to be sent.
  if (perhapsSent > 0) throw new SidecarError('too_many_mails', `${many}; looking again later`)
  throw new Reject('too_many_mails', `${many}; ask again later`)
}

/** A duration as people say it: `24 hours`, `30 minutes`. */
export function inWords(ms: number): string {
  const [amount, unit] =
    ms >= 7_200_000 ? [ms / 3_600_000, 'hour'] : ms >= 120_000 ? [ms / 60_000, 'minute'] : [ms / 1000, 'second']
  const rounded = Math.round(amount)
  return `${rounded} ${unit}${rounded === 1 ? '' : 's'}`
}
