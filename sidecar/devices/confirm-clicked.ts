import { isoTime, type Clock } from '../core/clock.ts'
import type { Context } from '../docstate/types.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { confirmFaults } from '../../ddocs/lib/confirm.ts'
import type { Confirm } from './device-documents.ts'
import { outOf, checkCodes } from './check-codes.ts'

/** What the document gets for a reason. None tells a stranger whether a device exists. */
const reasons = {
  refused: 'this code is wrong or was used; check the code on the device, or ask there for a new mail',
  expired: 'this link is too old; ask on the device for a new mail',
}

/**
 * confirm clicked → used, or error: matched by the mail's code and the device's. The device is moved first, then this
 * document: a crash between the two finds `confirmed_by` and only finishes. The code does not stay in the document.
 *
 * A device in `new` may be in a worker's hands, which sends it another mail: it is taken out of them. That mail is not
 * needed any more, and a worker that lost its document saves nothing.
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
