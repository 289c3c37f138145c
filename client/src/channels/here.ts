import type { ChannelDoc, SubscriptionDoc } from '../control/control-documents.ts'
import type { View } from '../control/view.ts'
import type { Place } from '../client-status.ts'
import type { Kept } from '../store.ts'
import { asNow, byChannel, localOf, type Local } from './locals.ts'

/** A channel on this device. */
export interface Here {
  readonly place: Place
  /** Whether this device differs from the user's other devices. */
  readonly onlyHere: boolean
  /** Undefined if this device has no data of the channel. */
  readonly local: Local | undefined
  /** Database on the server; undefined if its life is over. */
  readonly database: string | undefined
}

/** Derives each channel's state on this device from the stored data and the documents. */
export function channelsHere(kept: Kept, view: Pick<View, 'subscription'>): (channel: ChannelDoc) => Here {
  const user = kept.registration?.user
  const known = byChannel(kept.locals)
  return (channel) => {
    const own = known(channel._id)
    const now = asNow(own, channel)
    const subscription = view.subscription(channel._id)
    return {
      place: placeOf(now, subscription, user),
      onlyHere: exceptionOf(subscription, user) !== undefined,
      local: localOf(own, channel),
      database: now.database,
    }
  }
}

/** State of a channel on this device, by the documents alone. Only `synced` channels are synced. */
export function placeOf(
  channel: { readonly state: string; readonly database?: string | undefined },
  subscription: Pick<SubscriptionDoc, 'state' | 'devices'> | undefined,
  user: string | undefined,
): Place {
  switch (channel.state) {
    case 'closing':
    case 'closed':
      return 'closed'
    case 'removed':
      return 'removed'
  }
  // A channel is also `new` while its members change, and stays usable; a channel in `error` may exist.
  if (channel.database === undefined) return 'unready'
  switch (subscription?.state) {
    case 'invite':
      return 'invited'
    case 'active':
      return exceptionOf(subscription, user) === 'paused' ? 'paused' : 'synced'
    case 'paused':
      return exceptionOf(subscription, user) === 'active' ? 'synced' : 'paused'
    case 'ended':
    case 'left':
      return 'ended'
    case undefined:
    default:
      return 'unready'
  }
}

/** This device's own state; undefined if it does not differ from the other devices. */
const exceptionOf = (
  subscription: Pick<SubscriptionDoc, 'devices'> | undefined,
  user: string | undefined,
): string | undefined => (user === undefined ? undefined : subscription?.devices?.[user])
