import { isoTime, type Clock } from '../core/clock.ts'
import type { Context } from '../docstate/types.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { confirmFaults } from '../../ddocs/lib/confirm.ts'
import type { Confirm } from './device-documents.ts'
import { outOf, checkCodes } from './check-codes.ts'

/** Reasons for the document's `error`. None reveals to a stranger whether a device exists. */
const reasons = {
  refused: 'this code is wrong or was used; check the code on the device, or request a new mail there',
  expired: 'this link has expired; request a new mail on the device',
}

/**
 * confirm clicked → used, or error: checks the mail's code and the device's code. The device is written first, then
 * this document. After a crash between the two writes, the next attempt finds `confirmed_by` and only finishes. The
 * code does not stay in the document.
 *
 * Another worker may be sending another mail for a device in `new`: this write takes the device from that worker. The
 * mail is not needed any more, and a worker that lost its document saves nothing.
 */
export const matchCodes =
  ({ clock }: { readonly clock: Clock }) =>
  async (doc: Confirm & StoredDoc, ctx: Context) => {
    const { confirm_code = '', credentials, ...rest } = doc
    const refuse = (error: { code: string; reason: string }) => {
      return { ...rest, state: 'error' as const, error: { ...error, at: isoTime(clock.now()) } }
    }
    const faults = confirmFaults(doc)
    if (faults.length > 0) return refuse({ code: 'bad_confirm', reason: faults.join('; ') })

    const weighed = await checkCodes(ctx, { ...doc, confirm_code }, clock.now())
    switch (weighed.kind) {
      case 'right': {
        const device = outOf(weighed.device)
        const confirmation = { ...device.confirmation, confirmed_by: doc._id, ...(credentials && { credentials }) }
        await ctx.put({ ...device, state: 'confirmed', confirmation })
        return { ...rest, state: 'used' as const }
      }
      case 'again':
        return { ...rest, state: 'used' as const }
      case 'refused':
      case 'expired':
        return refuse({ code: weighed.kind, reason: reasons[weighed.kind] })
    }
  }
