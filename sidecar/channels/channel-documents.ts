import type { DbName } from '../accounts/account-names.ts'
import type { Address } from '../accounts/owner.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'

/** A channel as its users see it, in their control databases: the owner's request, and the copy of each member. */
export interface Channel extends Doc {
  readonly type: 'channel'
  readonly name: string
  /** Address. */
  readonly owner: string
  /** Addresses, without the owner's. */
  readonly members?: readonly string[]
  /** The app's own, for all members. */
  readonly data?: Data
  /** In `closing`: what becomes of the database. */
  readonly close?: Close
  /** In the owner's: members who have left it. */
  readonly left?: readonly Address[]
  readonly database?: string
  /** Address of the database, for devices. */
  readonly syncpoint?: string
  readonly owner_role?: string
}

export type Data = Readonly<Record<string, unknown>>

/** `archive`: kept, for server admins alone. */
export type Close = 'archive' | 'delete'

/** What is true of a channel. In the control database. */
export interface ChannelRecord extends Doc {
  readonly type: 'channel_record'
  readonly name: string
  readonly owner: Address
  readonly owner_role: string
  /** Where the owner's channel document is. */
  readonly user_database: DbName
  readonly document: string
  readonly members: readonly Address[]
  /** Who was a member, and may not have been told yet that he is none. */
  readonly former: readonly Address[]
  /** Of the members, now or before, those who have left by themselves: they are none, also if the owner names them again. */
  readonly left?: readonly Address[]
  readonly data?: Data
  /** Counts up when a closed channel is made again. */
  readonly life: number
  readonly database: DbName
  readonly role: string
  readonly close?: Close
  /** What became of the databases of earlier lives. */
  readonly ended?: readonly Ended[]
}

export interface Ended {
  readonly database: DbName
  readonly close: Close
}

/** That the database of a channel that has ended is looked at once more. In the control database. */
export interface ChannelEnd extends Doc {
  readonly type: 'channel_end'
  readonly database: DbName
  readonly close: Close
}

export type StoredRecord = ChannelRecord & StoredDoc

/** That a channel is to be on a user's devices. */
export interface Subscription extends Doc {
  readonly type: 'subscription'
  /** `_id` of the channel, in the same database. */
  readonly channel_id: string
  /** By the names of devices, where it is otherwise than for all. */
  readonly devices?: Readonly<Record<string, 'active' | 'paused'>>
  /** In `ended`: with its channel, which was closed, or taken from this user. If there is one again, it begins anew. */
  readonly withdrawn?: true
  /** Of an invitation: who has invited. */
  readonly from?: string
}

/** One mail to a user who has no device yet. In the control database. */
export interface Invitation extends Doc {
  readonly type: 'invitation'
  readonly member: Address
  readonly owner: Address
  /** Name of the channel. */
  readonly channel: string
  /** Id of its record. */
  readonly record: string
}

export const isRecord = (doc: StoredDoc | undefined): doc is StoredRecord => doc?.type === 'channel_record'

/** The code of an error that is no failure: a request came to nothing, and the channel goes on as it was. */
export const CHANGED_TWICE = 'changed_twice'

interface Told {
  readonly error: { readonly code: string; readonly reason: string }
}

export const isChangedTwice = (doc: Doc): doc is Doc & Told =>
  doc.state === 'error' && (doc as Partial<Told>).error?.code === CHANGED_TWICE

/** Its members have access, or are about to. */
export const isOpen = ({ state }: ChannelRecord): boolean => state === 'changed' || state === 'ready'

export const isMember = ({ owner, members, left = [] }: ChannelRecord, address: Address): boolean =>
  owner === address || (members.includes(address) && !left.includes(address))
