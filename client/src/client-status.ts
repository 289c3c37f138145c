/** What the app is told: one snapshot of everything, never changed afterwards. */

/** Why something does not go on at the moment. */
export interface Failure {
  /** `offline`, `denied`, `gone`, `unavailable`, `failed`, or a code of the server's. */
  readonly code: string
  /** For developers; not to be compared. */
  readonly reason?: string
}

export interface Status {
  readonly registration: RegistrationStatus
  /** Whether whatever is asked answers. */
  readonly online: boolean
  /** Of the user's control database. */
  readonly control: SyncStatus
  /** By name. */
  readonly channels: readonly ChannelStatus[]
  /** All devices of this user, by name. */
  readonly devices: readonly DeviceStatus[]
}

export interface RegistrationStatus {
  /**
   * `none`: `register` comes first. `unsent`: waits for the network. `new`: a mail is on its way. `confirming`: the owner
   * has it. `confirmed`: nearly there. `active`: it has an account. `expired`, `error`: ask again, or register anew.
   * `revoked`: by another device; what is here stays, and is synced no more.
   */
  readonly state: 'none' | 'unsent' | 'new' | 'confirming' | 'confirmed' | 'active' | 'expired' | 'error' | 'revoked'
  readonly owner?: string
  readonly name?: string
  /** To be shown, and typed in where the link of the mail leads. */
  readonly deviceCode?: string
  /** Name of the device's CouchDB user. */
  readonly user?: string
  /** In `error`: why. `refused`: the server does not take it, ever; `register` with other values begins anew. */
  readonly error?: Failure
  /** Of the last code that was typed in here: `error` is a wrong one, or one that is too old. */
  readonly confirmation?: { readonly state: 'unsent' | 'clicked' | 'used' | 'error'; readonly error?: Failure }
  /** Why the inbox could not be asked, or what is kept here not be read or written. It is tried again. */
  readonly failure?: Failure
}

export interface ChannelStatus {
  readonly id: string
  readonly name: string
  /** Address. */
  readonly owner: string
  readonly isOwner: boolean
  /** Addresses, without the owner's. */
  readonly members: readonly string[]
  /** The app's own. */
  readonly data?: Readonly<Record<string, unknown>>
  /** Of its document: `new`, `accepted` (the sidecar has seen it), `ready`, `closing`, `closed`, `removed`, `error`. */
  readonly state: string
  /** In `error`: why, in the server's words. */
  readonly error?: Failure
  readonly place: Place
  /** Of an invitation: who has invited. */
  readonly from?: string
  /** Whether it is otherwise on this device than on the user's others. */
  readonly onlyHere: boolean
  /** Name of its local database. Another name: call `open` again, it is another life of the channel. */
  readonly local?: string
  readonly sync: SyncStatus
}

/**
 * What a channel is to this device. `unready`: the server has not made it yet. `synced`, `paused`. `invited`: to be accepted
 * or declined. `ended`: the user wants it no more. `closed`: by its owner. `removed`: the user is no member any more.
 */
export type Place = 'unready' | 'synced' | 'paused' | 'invited' | 'ended' | 'closed' | 'removed'

export interface SyncStatus {
  /**
   * `off`: not to be synced. `waiting`: its turn comes. `syncing`: something is copied. `live`: all is copied, and what comes
   * is copied at once. `resting`: all is copied, the next look is soon. `offline`, `denied`, `failing`: tried again soon.
   */
  readonly state: 'off' | 'waiting' | 'syncing' | 'live' | 'resting' | 'offline' | 'denied' | 'failing'
  /** Documents that came, since the app was started. */
  readonly read: number
  /** Documents that went. */
  readonly written: number
  /** Changes that the server still has for us, as far as it has told. */
  readonly pending: number
  /** When both sides had the same, ISO 8601. */
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
   * A document that the server does not take, from a channel or (without `channel`) the control database. It stays here as it
   * is; its next revision is tried. In all tabs.
   */
  refused: { readonly channel?: string; readonly id: string; readonly reason: string }
}

export const OFF: SyncStatus = { state: 'off', read: 0, written: 0, pending: 0 }
export const WAITING: SyncStatus = { ...OFF, state: 'waiting' }
