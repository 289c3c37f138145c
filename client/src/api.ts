/** What an app sees. */
import type { ChannelChange, Close, NewChannel } from './control/channel-requests.ts'
import type { Where } from './control/subscription-requests.ts'
import type { PouchOf } from './pouch.ts'
import type { Hashing } from './registration/credentials.ts'
import type { Registering } from './registration/registration.ts'
import type { Events, Status } from './client-status.ts'

export interface ClientOptions<D = object> {
  /** The constructor, with the plugins and defaults of the app. */
  readonly PouchDB: PouchOf<D>
  /** Address of the sidecar's inbox. In browsers it may be relative to the page, like `couchdb`. */
  readonly inbox: string
  /** Begins the names of all local databases. */
  readonly name: string
  /** Address of CouchDB as this device reaches it, where that is not what the sidecar says: behind a proxy. */
  readonly couchdb?: string
  /** So many channels are followed live, the others in rounds. Default 3. */
  readonly live?: number
  /** How long a channel rests between two rounds, milliseconds. Default 30 s. */
  readonly roundMs?: number
  /** How the server hashes passwords, where the inbox does not tell. */
  readonly hashing?: Hashing
}

/** Every method that writes resolves when it is written here; the server is told when there is a network. */
export interface Client<D = object> {
  /** The last snapshot. */
  readonly status: Status
  /** Returns the end of it. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void
  /** Throws `ClientError`: `bad_argument`, `insecure_context`, `registered`. Once registered it changes nothing. */
  register(registering: Registering): Promise<void>
  /** Has another mail sent. Throws `ClientError` `wrong_state` where the server has refused what was registered. */
  askAgain(): Promise<void>
  /** The code in the link of the mail, or the link, typed in here. */
  confirm(code: string): Promise<void>
  /** Resolves with its id. */
  createChannel(channel: NewChannel): Promise<string>
  /** By its owner. */
  changeChannel(id: string, change: ChannelChange): Promise<void>
  setMembers(id: string, members: readonly string[]): Promise<void>
  /** `archive` keeps the database on the server, for its admins; `delete` does not. What is here stays. */
  closeChannel(id: string, close: Close): Promise<void>
  /** The local database of a channel, from the first second. Throws `ClientError` where nothing of it is here. */
  open(id: string): D
  accept(id: string): Promise<void>
  decline(id: string): Promise<void>
  /** Throws `ClientError` `wrong_state` where there is no subscription yet: until the channel is ready. So do `resume` and `end`. */
  pause(id: string, where?: Where): Promise<void>
  resume(id: string, where?: Where): Promise<void>
  /** It is synced no more, on all devices; `accept` begins again. Its user stays a member: `leave` ends that. */
  end(id: string): Promise<void>
  /** Its user is no member of a channel of another's any more, also if its owner names him again; `accept` comes back. */
  leave(id: string): Promise<void>
  /** Destroys what is here of a channel that is not synced. */
  forget(id: string): Promise<void>
  /** By the name of its user. */
  revokeDevice(user: string): Promise<void>
  /** Ends all syncs and closes the databases. */
  stop(): Promise<void>
  /**
   * Stops, and destroys all that is here, the registration too, and for all tabs: each has an empty status then, and a client
   * that has stopped. Revoke the device before.
   */
  destroy(): Promise<void>
}
