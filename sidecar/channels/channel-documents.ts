import type { DbName } from '../accounts/account-names.ts'
import type { Address } from '../accounts/owner.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'

/** A channel in a user's control database: the owner's request, or the copy of a member. */
export interface Channel extends Doc {
  readonly type: 'channel'
  readonly name: string
  /** Email address. */
  readonly owner: string
  /** Addresses, without the owner's. */
  readonly members?: readonly string[]
  /** Data of the app, visible to all members. */
  readonly data?: Data
  /** In `closing`: whether the database is archived or deleted. */
  readonly close?: Close
  /** In the owner's document: members who have left the channel. */
  readonly left?: readonly Address[]
  readonly database?: string
  /** URL of the database, for devices. */
  readonly syncpoint?: string
  readonly owner_role?: string
}

export type Data = Readonly<Record<string, unknown>>

/** `archive`: the database is kept, for server admins only. */
export type Close = 'archive' | 'delete'

/** The authoritative record of a channel. In the control database. */
export interface ChannelRecord extends Doc {
  readonly type: 'channel_record'
  readonly name: string
  readonly owner: Address
  readonly owner_role: string
  /** Name of the database that holds the owner's channel document. */
  readonly user_database: DbName
  readonly document: string
  readonly members: readonly Address[]
  /** Former members who may not have been notified of the removal yet. */
  readonly former: readonly Address[]
  /** Present or past members who left by themselves: they stay out, even if the owner names them again. */
  readonly left?: readonly Address[]
  readonly data?: Data
  /** Increases when a closed channel is made again. */
  readonly life: number
  readonly database: DbName
  readonly role: string
  readonly close?: Close
  /** Databases of earlier lives, and how each was closed. */
  readonly ended?: readonly Ended[]
}

export interface Ended {
  readonly database: DbName
  readonly close: Close
}

/** Schedules a second end of an ended channel's database (`endAgain`). In the control database. */
export interface ChannelEnd extends Doc {
  readonly type: 'channel_end'
  readonly database: DbName
  readonly close: Close
}

export type StoredRecord = ChannelRecord & StoredDoc

/** States whether a channel is on a user's devices. */
export interface Subscription extends Doc {
  readonly type: 'subscription'
  /** `_id` of the channel, in the same database. */
  readonly channel_id: string
  /** Exceptions for single devices, by device name. */
  readonly devices?: Readonly<Record<string, 'active' | 'paused'>>
  /** In `ended`: the channel was closed or taken from this user. If it returns, the subscription begins anew. */
  readonly withdrawn?: true
  /** For an invitation: address of the owner who invites. */
  readonly from?: string
}

/** One mail to a user who has no device yet. In the control database. */
export interface Invitation extends Doc {
  readonly type: 'invitation'
  readonly member: Address
  readonly owner: Address
  /** Name of the channel. */
  readonly channel: string
  /** Id of the channel's record. */
  readonly record: string
}

export const isRecord = (doc: StoredDoc | undefined): doc is StoredRecord => doc?.type === 'channel_record'

/** Code of an error that is no failure: one request was dropped, and the channel continues as it was. */
export const CHANGED_TWICE = 'changed_twice'

interface ChangedTwiceError {
  readonly error: { readonly code: string; readonly reason: string }
}

export const isChangedTwice = (doc: Doc): doc is Doc & ChangedTwiceError =>
  doc.state === 'error' && (doc as Partial<ChangedTwiceError>).error?.code === CHANGED_TWICE

/** True if the members have access, or are about to get it. */
export const isOpen = ({ state }: ChannelRecord): boolean => state === 'changed' || state === 'ready'

export const isMember = ({ owner, members, left = [] }: ChannelRecord, address: Address): boolean =>
  owner === address || (members.includes(address) && !left.includes(address))
