import type { Doc, StoredDoc } from '../couch/documents.ts'
import { deviceFaults } from '../../ddocs/lib/device.ts'

/** A password as CouchDB keeps it in `_users`, made by the side that knows the password. */
export interface HashedPassword {
  readonly password_scheme: 'pbkdf2'
  readonly pbkdf2_prf?: string
  readonly derived_key: string
  readonly salt: string
  readonly iterations: number
}

/** What is kept of a code that was sent. */
export interface SentCode {
  readonly hash: string
  readonly expires_at: string
  /** `ctx.key` of the request for a mail that it was made for: several tries of one mail may each have a code. */
  readonly key?: string
}

/** What a document has that came through the inbox. */
export interface FromInbox {
  /** The SHA-256 of the secret that its writer chose. */
  readonly secret_sha256?: string
  /**
   * `rev`: its writer's last revision that was taken in, what comes with an older one is a repetition. `by`: from where that
   * came, so that one place cannot use up what all others may have.
   */
  readonly inbox?: { readonly rev: string; readonly by?: string }
}

/** What was sent to the owner: any code that has not expired will do, since mails may cross. */
export interface Confirmation {
  readonly codes: readonly SentCode[]
  /** The confirm document that did it. */
  readonly confirmed_by?: string
  /** The password that came with it, for a device that brought none. Asking again for a mail forgets it. */
  readonly credentials?: HashedPassword
}

export interface Device extends Doc, FromInbox {
  readonly type: 'device'
  readonly owner: string
  readonly device_code: string
  readonly name?: string
  /** Brought by the device; `generate` (or nothing) lets the confirm page make them. Gone once it is active. */
  readonly credentials?: HashedPassword | { readonly generate: true }
  readonly confirmation?: Confirmation
  /** Name of the device's CouchDB user, from `active` on. */
  readonly user?: string
  /** The role of the owner's devices. From the first mail on, so that they may revoke this one: it has not the role yet. */
  readonly owner_role?: string
}

export interface Confirm extends Doc, FromInbox {
  readonly type: 'confirm'
  readonly device_id: string
  readonly device_code: string
  readonly confirm_code?: string
  /** Made by the confirm page for a device that brought none. */
  readonly credentials?: HashedPassword
}

export type StoredDevice = Device & StoredDoc

/**
 * The device of an id that a stranger has given, if it is there and well formed: admins may write anything. What
 * begins with `_` is no document (some of it stands for the whole database), nor is what an address takes for a folder.
 */
export async function findDevice(
  id: string,
  find: (id: string) => Promise<StoredDoc | undefined>,
): Promise<StoredDevice | undefined> {
  const doc = /^(_|\.{1,2}$)/.test(id) ? undefined : await find(id)
  return doc?.type === 'device' && deviceFaults(doc).length === 0 ? (doc as StoredDevice) : undefined
}

/** The codes that were sent and are not forgotten, without what an admin may have put among them. */
export function sentCodes({ confirmation }: Device): SentCode[] {
  const codes: unknown = confirmation?.codes
  return Array.isArray(codes) ? codes.filter(isSentCode) : []
}

const isSentCode = (code: unknown): code is SentCode => {
  const { hash, expires_at } = (code ?? {}) as Partial<SentCode>
  return typeof hash === 'string' && typeof expires_at === 'string' && !Number.isNaN(Date.parse(expires_at))
}

/** The hash a device has brought, if it has. */
export const hashedPassword = (credentials: Device['credentials']): HashedPassword | undefined =>
  credentials && 'derived_key' in credentials ? credentials : undefined
