import type { ChannelDoc } from '../control/control-documents.ts'
import type { View } from '../control/view.ts'
import type { Place } from '../client-status.ts'
import type { Kept } from '../store.ts'
import { asNow, byChannel, localOf, type Local } from './locals.ts'
import { exceptionOf, placeOf } from './wanted.ts'

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
