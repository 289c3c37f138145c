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
  /** The device was confirmed before, and the link is valid: clicking twice is no fault. */
  | 'again'
  /** The link is valid, the device's code is not. Only this code can be guessed, so the try is counted. */
  | 'wrong'
  | 'refused'
  | 'expired'

/** Checks the codes without side effects. */
export function judge(device: Device | undefined, deviceCode: string, code: string, now: number): Verdict {
  const known = device && sentCode(device, code)
  if (!known) return 'refused'
  if (isExpired(device, known, now)) return 'expired'
  const done = device.state === 'confirmed' || device.state === 'active'
  if (!done && !isOpen(device)) return 'refused'
  if (!sameText(device.device_code, deviceCode)) return 'wrong'
  return done ? 'again' : 'right'
}

/** A worker whose clock is a little ahead may have ended the device before this worker's clock reaches the expiry. */
const isExpired = ({ state }: Device, { expires_at }: SentCode, now: number): boolean =>
  state === 'expired' || Date.parse(expires_at) <= now

/**
 * Whether a valid link may confirm the device. A later request for another mail does not matter: that mail may be on
 * its way, have failed, or exceed the quota. Only a device that was confirmed, and failed then, needs another one.
 */
const isOpen = ({ state, confirmation }: Device): boolean =>
  state === 'confirming' || ((state === 'new' || state === 'error') && confirmation?.confirmed_by === undefined)

export type LinkState =
  /** The link waits for the device's code. */
  | { readonly kind: 'open'; readonly device: Device }
  /** The device was confirmed, or needs another mail. */
  | { readonly kind: 'used'; readonly device: Device }
  | { readonly kind: 'expired' }
  | { readonly kind: 'unknown' }

/** The state of a link, for a reader with the link alone: the link's code is a secret that only the mail has. */
export function stateOfLink(device: Device | undefined, code: string, now: number): LinkState {
  const known = device && sentCode(device, code)
  if (!known) return { kind: 'unknown' }
  if (device.state === 'confirmed' || device.state === 'active') return { kind: 'used', device }
  if (isExpired(device, known, now)) return { kind: 'expired' }
  return isOpen(device) ? { kind: 'open', device } : { kind: 'used', device }
}

export type CodesChecked =
  | { readonly kind: 'right' | 'again'; readonly device: StoredDevice }
  | { readonly kind: 'refused' }
  | { readonly kind: 'expired' }

/** The fields that a user sends to confirm a device. */
export interface Codes {
  readonly device_id: string
  readonly device_code: string
  readonly confirm_code: string
}

const REFUSED: CodesChecked = { kind: 'refused' }

/** Checks and counts: a code takes a place before it is compared, and the fifth wrong one ends the registration. */
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

/** The document without the fields of the state that it leaves. */
export function outOf({ docstate: _docstate, error: _error, ...device }: StoredDevice): StoredDevice {
  return device
}

/** Finds a sent code. The time of the comparison does not reveal how much of a code is right. */
const sentCode = (device: Device, code: string): SentCode | undefined => {
  const hash = hashCode(code)
  return sentCodes(device).find((sent) => sameText(sent.hash, hash))
}

/** Writes the document. False if it has changed in the meantime. */
const isWritten = (documents: Documents, doc: StoredDoc): Promise<boolean> =>
  documents.put(doc).then(
    () => true,
    (thrown: unknown) => {
      if (isCouchError(thrown, 'conflict')) return false
      throw thrown
    },
  )
