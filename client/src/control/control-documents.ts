/** Documents of the user's control database, as in the sidecar's `docs/designs/channels.md`. */
interface Doc {
  readonly _id: string
  readonly _rev: string
  readonly state: string
  readonly error?: { readonly code: string; readonly reason?: string }
}

export interface ChannelDoc extends Doc {
  readonly type: 'channel'
  readonly name: string
  readonly owner: string
  readonly members?: readonly string[]
  readonly data?: Readonly<Record<string, unknown>>
  readonly database?: string
}

export interface SubscriptionDoc extends Doc {
  readonly type: 'subscription'
  readonly channel_id: string
  /** States of devices that differ from the others, by the name of the device's user. */
  readonly devices?: Readonly<Record<string, string>>
  readonly from?: string
}

export interface DeviceDoc extends Doc {
  readonly type: 'device'
  readonly name?: string
}

export type ControlDoc = ChannelDoc | SubscriptionDoc | DeviceDoc

const TYPES = ['channel', 'subscription', 'device']

/** Documents of other types belong to the app. */
export function isControlDoc(doc: unknown): doc is ControlDoc {
  const { _id, type, state } = (doc ?? {}) as Partial<Record<'_id' | 'type' | 'state', unknown>>
  return typeof _id === 'string' && typeof state === 'string' && TYPES.includes(String(type))
}

export const subscriptionIdOf = (channelId: string): string => `subscription:${channelId}`

/** Whether the user owns the channel: a member's document has an id that only the sidecar may use. */
export const isOwn = ({ _id }: Pick<ChannelDoc, '_id'>): boolean => !_id.startsWith('channel:')
