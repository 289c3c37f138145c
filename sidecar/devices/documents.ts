import type { Doc } from '../couch/documents.ts'

/** A password as CouchDB keeps it in `_users`, made by whoever knows the password. */
export interface HashedPassword {
  readonly password_scheme: 'pbkdf2'
  readonly pbkdf2_prf?: string
  readonly derived_key: string
  readonly salt: string
  readonly iterations: number
}

/** What was sent to the owner: any code that has not expired will do, since mails may cross. */
export interface Confirmation {
  readonly codes: readonly { readonly hash: string; readonly expires_at: string }[]
  /** Confirm documents that had the right link and the wrong device code. */
  readonly wrong?: readonly string[]
  /** The confirm document that did it. */
  readonly confirmed_by?: string
}

export interface Device extends Doc {
  readonly type: 'device'
  readonly owner: string
  readonly device_code: string
  readonly name?: string
  /** Brought by the device; `generate` (or nothing) lets the confirm page make them. Gone once it is active. */
  readonly credentials?: HashedPassword | { readonly generate: true }
  readonly confirmation?: Confirmation
  /** Name of the device's CouchDB user, from `active` on. */
  readonly user?: string
  /** The role it shares with the owner's other devices. */
  readonly owner_role?: string
}

export interface Confirm extends Doc {
  readonly type: 'confirm'
  readonly device_id: string
  readonly device_code: string
  readonly confirm_code?: string
  /** Made by the confirm page for a device that brought none. */
  readonly credentials?: HashedPassword
}

/** The hash a device has brought, if it has. */
export const hashedPassword = (credentials: Device['credentials']): HashedPassword | undefined =>
  credentials && 'derived_key' in credentials ? credentials : undefined
