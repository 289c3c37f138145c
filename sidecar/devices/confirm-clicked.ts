import { isoTime, type Clock } from '../core/clock.ts'
import { SidecarError } from '../core/errors.ts'
import type { Context } from '../docstate/types.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { confirmFaults } from '../../ddocs/lib/confirm.ts'
import { hashCode, sameText } from './codes.ts'
import {
  findDevice,
  hashedPassword,
  sentCodes,
  wrongConfirms,
  type Confirm,
  type Device,
  type StoredDevice,
} from './documents.ts'

/** Guesses of the code that the device shows, by somebody who has the mail. */
const WRONG_ALLOWED = 5

/** What the document gets for a reason. None tells a stranger whether a device exists. */
const reasons = {
  refused: 'this code is wrong or was used; check the code on the device, or ask there for a new mail',
  expired: 'this link is too old; ask on the device for a new mail',
}

type Verdict =
  | { readonly kind: 'right' }
  /** It was confirmed before, with a link that is good: clicking twice is no fault. */
  | { readonly kind: 'again' }
  /** The link is good, the device's code is not: the one thing that can be guessed, so it is counted. */
  | { readonly kind: 'wrong' }
  /** The link is good, and the device has just asked for another mail: what is right will be right when that is sent. */
  | { readonly kind: 'too-early' }
  | { readonly kind: 'refused' | 'expired' }

/**
 * confirm clicked → used, or error: matched by the mail's code and the device's. The device is moved first, then this
 * document: a crash between the two finds `confirmed_by` and only finishes. The code does not stay in the document.
 */
export const matchCodes =
  ({ clock }: { readonly clock: Clock }) =>
  async (doc: Confirm & StoredDoc, ctx: Context) => {
    const { confirm_code: code = '', credentials, ...rest } = doc
    const refuse = (error: { code: string; reason: string }) => {
      return { ...rest, state: 'error' as const, error: { ...error, at: isoTime(clock.now()) } }
    }
    const faults = confirmFaults(doc)
    if (faults.length > 0) return refuse({ code: 'bad_confirm', reason: faults.join('; ') })

    const device = await findDevice(doc.device_id, (id) => ctx.find(id))
    const verdict = judge(device, doc.device_code, code, clock.now())
    switch (verdict.kind) {
      case 'right': {
        const password = hashedPassword(device!.credentials) ?? credentials
        const confirmation = { ...device!.confirmation, confirmed_by: doc._id }
        await ctx.put({ ...device!, state: 'confirmed', confirmation, ...(password && { credentials: password }) })
        return { ...rest, state: 'used' as const }
      }
      case 'again':
        return { ...rest, state: 'used' as const }
      case 'wrong':
        await ctx.put(withWrong(device!, doc._id, clock.now()))
        return refuse({ code: 'refused', reason: reasons.refused })
      case 'too-early':
        throw new SidecarError('device_asks', 'the device asks for another mail at the moment; looking again shortly')
      case 'refused':
      case 'expired':
        return refuse({ code: verdict.kind, reason: reasons[verdict.kind] })
    }
  }

/** Decides without side effects. Also what the confirm page asks before it writes anything. */
export function judge(device: Device | undefined, deviceCode: string, code: string, now: number): Verdict {
  const hash = hashCode(code)
  const known = device && sentCodes(device).find((entry) => sameText(entry.hash, hash))
  if (!device || !known) return { kind: 'refused' }
  if (Date.parse(known.expires_at) <= now) return { kind: 'expired' }
  if (device.state === 'new') return { kind: 'too-early' }
  const right = sameText(device.device_code, deviceCode)
  if (device.state === 'confirming') return { kind: right ? 'right' : 'wrong' }
  const done = device.state === 'confirmed' || device.state === 'active'
  return { kind: done && right ? 'again' : 'refused' }
}

/** The device after a wrong guess. The same guess counts once. */
export function withWrong(device: StoredDevice, confirmId: string, now: number): Doc {
  const wrong = [...new Set([...wrongConfirms(device), confirmId])]
  const confirmation = { codes: sentCodes(device), wrong }
  if (wrong.length < WRONG_ALLOWED) return { ...device, confirmation }
  const reason = 'its code was typed in wrong too often; ask on the device for a new mail'
  const error = { code: 'too_many_attempts', reason, at: isoTime(now) }
  return { ...device, state: 'error', error, confirmation: { codes: [] } }
}
