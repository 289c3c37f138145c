import { isoTime } from '../core/clock.ts'
import { sameText } from '../core/same-text.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { hashCode } from './codes.ts'
import type { Documents } from '../couch/documents.ts'
import { findDevice, sentCodes, type Device, type SentCode, type StoredDevice } from './device-documents.ts'
import { isCounted, isExhausted, countAttempt, tooManyAttempts } from './attempt-limit.ts'

export type Verdict =
  | 'right'
  /** It was confirmed before, with a link that is good: clicking twice is no fault. */
  | 'again'
  /** The link is good, the device's code is not: the one thing that can be guessed, so it is counted. */
  | 'wrong'
  | 'refused'
  | 'expired'

/** Decides without side effects. */
export function judge(device: Device | undefined, deviceCode: string, code: string, now: number): Verdict {
  const known = device && sentCode(device, code)
  if (!known) return 'refused'
  if (Date.parse(known.expires_at) <= now) return 'expired'
  const done = device.state === 'confirmed' || device.state === 'active'
  if (!done && !isOpen(device)) return 'refused'
  if (!sameText(device.device_code, deviceCode)) return 'wrong'
  return done ? 'again' : 'right'
}

/**
 * A link is as good as its code, whatever became of asking for another mail since: that may still be on its way, or
 * have failed, or have been one too many. Only a device that was confirmed, and failed then, has to ask again.
 */
const isOpen = ({ state, confirmation }: Device): boolean =>
  state === 'confirming' || ((state === 'new' || state === 'error') && confirmation?.confirmed_by === undefined)

export type LinkState =
  /** It waits for the device's code. */
  | { readonly kind: 'open'; readonly device: Device }
  /** The device was confirmed, or has to ask again. */
  | { readonly kind: 'used'; readonly device: Device }
  | { readonly kind: 'expired' }
  | { readonly kind: 'unknown' }

/** What is to be said to who holds the link alone: its code is a secret that only the mail has. */
export function stateOfLink(device: Device | undefined, code: string, now: number): LinkState {
  const known = device && sentCode(device, code)
  if (!known) return { kind: 'unknown' }
  if (device.state === 'confirmed' || device.state === 'active') return { kind: 'used', device }
  if (Date.parse(known.expires_at) <= now || device.state === 'expired') return { kind: 'expired' }
  return isOpen(device) ? { kind: 'open', device } : { kind: 'used', device }
}

export type CodesChecked =
  | { readonly kind: 'right' | 'again'; readonly device: StoredDevice }
  | { readonly kind: 'refused' }
  | { readonly kind: 'expired' }

/** What a user sends to confirm a device. */
export interface Codes {
  readonly device_id: string
  readonly device_code: string
  readonly confirm_code: string
}

const REFUSED: CodesChecked = { kind: 'refused' }

/** Judges, and counts: a code takes a place among the guesses before it is compared, and the fifth wrong one ends it. */
export async function checkCodes(documents: Documents, codes: Codes, now: number): Promise<CodesChecked> {
  const { device_id, device_code, confirm_code } = codes
  for (;;) {
    const device = await findDevice(device_id, (id) => documents.find(id))
    const verdict = judge(device, device_code, confirm_code, now)
    if (!device || verdict === 'refused') return REFUSED
    if (verdict === 'expired') return { kind: 'expired' }
    const until = sentCode(device, confirm_code)!.expires_at
    const guesses = await countAttempt(documents, device._id, { code: device_code, until }, now)
    if (verdict !== 'wrong' && isCounted(guesses, device_code)) return { kind: verdict, device }
    if (!isOpen(device) || !isExhausted(guesses, device.device_code)) return REFUSED
    const error = { ...tooManyAttempts(guesses), at: isoTime(now) }
    const ended = { ...outOf(device), state: 'error', error, confirmation: { codes: [] } }
    if (await isWritten(documents, ended)) return REFUSED
  }
}

/** The document without what is said of the state that it leaves. */
export function outOf({ docstate: _docstate, error: _error, ...device }: StoredDevice): StoredDevice {
  return device
}

/** In a time that does not tell how much of a code is right. */
const sentCode = (device: Device, code: string): SentCode | undefined => {
  const hash = hashCode(code)
  return sentCodes(device).find((sent) => sameText(sent.hash, hash))
}

/** False if the document has changed. */
const isWritten = (documents: Documents, doc: StoredDoc): Promise<boolean> =>
  documents.put(doc).then(
    () => true,
    (thrown: unknown) => {
      if (isCouchError(thrown, 'conflict')) return false
      throw thrown
    },
  )
