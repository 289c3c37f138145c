import type { Doc, StoredDoc } from '../couch/documents.ts'
import { deviceFaults } from '../../ddocs/lib/device.ts'

/** A password hash as CouchDB stores it in `_users`. The side that knows the password makes the hash. */
export interface HashedPassword {
  readonly password_scheme: 'pbkdf2'
  readonly pbkdf2_prf?: string
  readonly derived_key: string
  readonly salt: string
  readonly iterations: number
}

/** The stored part of a code that was sent. */
export interface SentCode {
  readonly hash: string
  readonly expires_at: string
  /** `ctx.key` of the mail request that the code was made for: each try of one mail may have its own code. */
  readonly key?: string
}

/** Fields of a document that came through the inbox. */
export interface FromInbox {
  /** The SHA-256 of the secret that its writer chose. */
  readonly secret_sha256?: string
  /**
   * `rev`: the writer's last accepted revision; a write with an older one is a repetition. `by`: the sender of that
   * revision, so that one sender cannot use up the quota of all others.
   */
  readonly inbox?: { readonly rev: string; readonly by?: string }
}

/** The codes that were sent to the owner. Any unexpired code is valid: mails may cross. */
export interface Confirmation {
  readonly codes: readonly SentCode[]
  /** Id of the confirm document that confirmed the device. */
  readonly confirmed_by?: string
  /** Password hash from that document, for a device that brought none. A request for another mail removes it. */
  readonly credentials?: HashedPassword
}

export interface Device extends Doc, FromInbox {
  readonly type: 'device'
  readonly owner: string
  readonly device_code: string
  readonly name?: string
  /** From the device; `generate`, or no field, lets the confirm page make them. Removed when the device is active. */
  readonly credentials?: HashedPassword | { readonly generate: true }
  readonly confirmation?: Confirmation
  /** Name of the device's CouchDB user, from `active` on. */
  readonly user?: string
  /** Role of the owner's devices, from the first mail on: they may revoke this device before it has the role itself. */
  readonly owner_role?: string
}

export interface Confirm extends Doc, FromInbox {
  readonly type: 'confirm'
  readonly device_id: string
  readonly device_code: string
  readonly confirm_code?: string
  /** Password hash from the confirm page, for a device that brought none. */
  readonly credentials?: HashedPassword
}

export type StoredDevice = Device & StoredDoc

/**
 * Finds the device with an id that a stranger has given. Undefined if it is missing or malformed: admins may write any
 * document. Ids that begin with `_` are no documents: some URLs then mean the whole database. `.` and `..` mean
 * folders.
 */
export async function findDevice(
  id: string,
  find: (id: string) => Promise<StoredDoc | undefined>,
): Promise<StoredDevice | undefined> {
  const doc = /^(_|\.{1,2}$)/.test(id) ? undefined : await find(id)
  return doc?.type === 'device' && deviceFaults(doc).length === 0 ? (doc as StoredDevice) : undefined
}

/** The sent codes that are still stored, without malformed entries that an admin may have added. */
export function sentCodes({ confirmation }: Device): SentCode[] {
  const codes: unknown = confirmation?.codes
  return Array.isArray(codes) ? codes.filter(isSentCode) : []
}

const isSentCode = (code: unknown): code is SentCode => {
  const { hash, expires_at } = (code ?? {}) as Partial<SentCode>
  return typeof hash === 'string' && typeof expires_at === 'string' && !Number.isNaN(Date.parse(expires_at))
}

/** The password hash that a device brought; undefined if it brought none. */
export const hashedPassword = (credentials: Device['credentials']): HashedPassword | undefined =>
  credentials && 'derived_key' in credentials ? credentials : undefined
