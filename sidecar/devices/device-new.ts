import { isoTime, type Clock } from '../core/clock.ts'
import { Reject } from '../core/errors.ts'
import type { Context } from '../docstate/types.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Templates } from '../mail/templates.ts'
import { deviceFaults } from '../../ddocs/lib/device.ts'
import { hashCode, newCode } from './codes.ts'
import { sentCodes, type Device } from './documents.ts'
import { takeMail } from './mail-ledger.ts'
import { normaliseAddress } from './names.ts'

export interface MailOptions {
  readonly templates: Templates
  readonly clock: Clock
  /** Base of the links, without a slash at its end. */
  readonly publicUrl: string
  readonly confirmExpiryMs: number
  readonly mailsPerOwner: number
}

/** Links of the last mails stay good until they expire: people click the first mail after asking for a second. */
const CODES_KEPT = 5

/**
 * device new → confirming: one mail to the owner. The code's hash is saved before the mail goes, so that whichever
 * mail arrives, its link works; the code itself is nowhere but in the mail.
 */
export const mailOwner =
  ({ templates, clock, publicUrl, confirmExpiryMs, mailsPerOwner }: MailOptions) =>
  async (doc: Device & StoredDoc, ctx: Context) => {
    const faults = deviceFaults(doc)
    if (faults.length > 0) throw new Reject('bad_device', faults.join('; '))
    const now = clock.now()
    const owner = normaliseAddress(doc.owner)
    if (!(await takeMail(ctx, owner, mailsPerOwner, now))) {
      throw new Reject(
        'too_many_mails',
        `no more than ${mailsPerOwner} mails an hour go to one address; ask again later`,
      )
    }

    const code = newCode()
    const live = sentCodes(doc).filter(({ expires_at }) => Date.parse(expires_at) > now)
    const codes = [...live, { hash: hashCode(code), expires_at: isoTime(now + confirmExpiryMs) }].slice(-CODES_KEPT)
    const { error: _error, ...device } = { ...doc, owner, confirmation: { codes } } as Device & { error?: unknown }
    await ctx.save({ ...device, state: 'new' })

    const link = `${publicUrl}/confirm/${encodeURIComponent(doc._id)}/${code}`
    await ctx.mail.send({
      to: owner,
      ...templates.confirm({ name: doc.name ?? 'A device', link, expires_in: inWords(confirmExpiryMs), owner }),
    })
    return { ...device, state: 'confirming' as const }
  }

/** A duration as people say it: `24 hours`, `30 minutes`. */
export function inWords(ms: number): string {
  const [amount, unit] =
    ms >= 7_200_000 ? [ms / 3_600_000, 'hour'] : ms >= 120_000 ? [ms / 60_000, 'minute'] : [ms / 1000, 'second']
  const rounded = Math.round(amount)
  return `${rounded} ${unit}${rounded === 1 ? '' : 's'}`
}
