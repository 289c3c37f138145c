/** The API for apps. */
import type { ChannelChange, Close, NewChannel } from './control/channel-requests.ts'
import type { Where } from './control/subscription-requests.ts'
import type { PouchOf } from './pouch.ts'
import type { Hashing } from './registration/credentials.ts'
import type { Registering } from './registration/registration.ts'
import type { Events, Status } from './client-status.ts'

export interface ClientOptions<D = object> {
  /** PouchDB's constructor, with the plugins and defaults of the app. */
  readonly PouchDB: PouchOf<D>
  /** Address of the sidecar's inbox. In browsers it may be relative to the page, like `couchdb`. */
  readonly inbox: string
  /** Prefix of the names of all local databases. */
  readonly name: string
  /** Address of CouchDB for this device, if it differs from the sidecar's, such as behind a proxy. */
  readonly couchdb?: string
  /** Number of channels that sync live; the others sync in rounds. Default 3. */
  readonly live?: number
  /** Pause of a channel between two rounds, milliseconds. Default 30 s. */
  readonly roundMs?: number
  /** How the server hashes passwords, if the inbox does not report it. */
  readonly hashing?: Hashing
}

/** A method that writes resolves after the local write; the server gets the change when the network is available. */
export interface Client<D = object> {
  /** The latest snapshot. */
  readonly status: Status
  /** Returns a function that removes the listener. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void
  /** Throws `ClientError`: `bad_argument`, `insecure_context`, `registered`. Does nothing once registered. */
  register(registering: Registering): Promise<void>
  /** Requests another mail. Throws `ClientError` `wrong_state` if the server has refused the registration. */
  askAgain(): Promise<void>
  /** Confirms the registration. `code` is the code in the link of the mail, or the whole link. */
  confirm(code: string): Promise<void>
  /** Resolves with the channel's id. */
  createChannel(channel: NewChannel): Promise<string>
  /** Only the owner may call this. */
  changeChannel(id: string, change: ChannelChange): Promise<void>
  setMembers(id: string, members: readonly string[]): Promise<void>
  /** `archive` keeps the database on the server, for its admins; `delete` does not. Local data stays. */
  closeChannel(id: string, close: Close): Promise<void>
  /** The local database of a channel, usable at once. Throws `ClientError` if this device has none for the channel. */
  open(id: string): D
  accept(id: string): Promise<void>
  decline(id: string): Promise<void>
  /** Throws `ClientError` `wrong_state` until the channel is ready and has a subscription. So do `resume` and `end`. */
  pause(id: string, where?: Where): Promise<void>
  resume(id: string, where?: Where): Promise<void>
  /** Ends the sync on all devices; `accept` starts it again. The user stays a member: `leave` ends the membership. */
  end(id: string): Promise<void>
  /** Ends membership in another owner's channel, even if the owner adds the user again. `accept` restores it. */
  leave(id: string): Promise<void>
  /** Destroys the local data of a channel that is not synced. */
  forget(id: string): Promise<void>
  /** Revokes a device, by the name of its CouchDB user. */
  revokeDevice(user: string): Promise<void>
  /** Ends all syncs and closes the databases. */
  stop(): Promise<void>
  /**
   * Stops the clients in all tabs, and destroys all local data and the registration. Each tab then has an empty status.
   * Revoke the device first.
   */
  destroy(): Promise<void>
}
