/** The status for the app: one immutable snapshot. */

/** Why an operation cannot continue at the moment. */
export interface Failure {
  /** `offline`, `denied`, `gone`, `unavailable`, `failed`, or a code from the server. */
  readonly code: string
  /** For developers; do not compare it. */
  readonly reason?: string
}

export interface Status {
  readonly registration: RegistrationStatus
  /** Whether all servers answer. */
  readonly online: boolean
  /** Sync of the user's control database. */
  readonly control: SyncStatus
  /** Sorted by name. */
  readonly channels: readonly ChannelStatus[]
  /** All devices of this user, sorted by name. */
  readonly devices: readonly DeviceStatus[]
}

export interface RegistrationStatus {
  /**
   * `none`: call `register` first. `unsent`: waits for the network. `new`: a mail is on its way. `confirming`: the
   * owner has the mail. `confirmed`: nearly done. `active`: the device has an account. `expired`, `error`: call
   * `askAgain`, or register anew. `revoked`: by another device; local data stays, and is no longer synced.
   */
  readonly state: 'none' | 'unsent' | 'new' | 'confirming' | 'confirmed' | 'active' | 'expired' | 'error' | 'revoked'
  readonly owner?: string
  readonly name?: string
  /** Show this code: the owner types it in on the page that the mail links to. */
  readonly deviceCode?: string
  /** Name of the device's CouchDB user. */
  readonly user?: string
  /** The reason for `error`. `refused`: the server will never accept it; call `register` with other values. */
  readonly error?: Failure
  /** Status of the last code that the user typed in; `error` means that the code is wrong or too old. */
  readonly confirmation?: { readonly state: 'unsent' | 'clicked' | 'used' | 'error'; readonly error?: Failure }
  /** Why the inbox does not answer, or local data cannot be read or written. It is retried. */
  readonly failure?: Failure
}

export interface ChannelStatus {
  readonly id: string
  readonly name: string
  /** Email address. */
  readonly owner: string
  readonly isOwner: boolean
  /** Email addresses, without the owner's. */
  readonly members: readonly string[]
  /** The app's own data. */
  readonly data?: Readonly<Record<string, unknown>>
  /**
   * State of its document: `new`, `accepted` (the sidecar has seen it), `ready`, `closing`, `closed`, `removed`,
   * `error`.
   */
  readonly state: string
  /** The reason for `error`, in the server's words. */
  readonly error?: Failure
  readonly place: Place
  /** The user that sent the invitation. */
  readonly from?: string
  /** Whether this device differs from the user's other devices. */
  readonly onlyHere: boolean
  /** Name of its local database. If the name changes, call `open` again: the channel has a new life. */
  readonly local?: string
  readonly sync: SyncStatus
}

/**
 * State of a channel on this device. `unready`: the server has not created it yet. `synced`, `paused`. `invited`: call
 * `accept` or `decline`. `ended`: by the user. `closed`: by its owner. `removed`: the user is no longer a member.
 */
export type Place = 'unready' | 'synced' | 'paused' | 'invited' | 'ended' | 'closed' | 'removed'

export interface SyncStatus {
  /**
   * `off`: not synced. `waiting`: waits for its turn. `syncing`: copies documents. `live`: up to date, and copies
   * changes at once. `resting`: up to date until the next round. `offline`, `denied`, `failing`: retried soon.
   */
  readonly state: 'off' | 'waiting' | 'syncing' | 'live' | 'resting' | 'offline' | 'denied' | 'failing'
  /** Documents received since the app started. */
  readonly read: number
  /** Documents sent since the app started. */
  readonly written: number
  /** Changes that the server still has for this device, as far as it reports them. */
  readonly pending: number
  /** Last time when both sides were equal, ISO 8601. */
  readonly syncedAt?: string
  readonly failure?: Failure
}

export interface DeviceStatus {
  /** Name of its CouchDB user. */
  readonly user: string
  readonly name: string
  readonly state: string
  readonly isThis: boolean
}

export interface Events {
  change: Status
  /**
   * The server refuses a document of a channel or, without `channel`, of the control database. It stays unchanged on
   * this device; its next revision is sent. Emitted in all tabs.
   */
  refused: { readonly channel?: string; readonly id: string; readonly reason: string }
}

export const OFF: SyncStatus = { state: 'off', read: 0, written: 0, pending: 0 }
export const WAITING: SyncStatus = { ...OFF, state: 'waiting' }
