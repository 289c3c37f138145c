import type { ChannelDoc } from '../control/control-documents.ts'
import type { View } from '../control/view.ts'
import type { Place } from '../client-status.ts'
import type { Kept } from '../store.ts'
import { asNow, byChannel, localOf, type Local } from './locals.ts'
import { exceptionOf, placeOf } from './wanted.ts'

/** What a channel is to this device. */
export interface Here {
  readonly place: Place
  /** Whether it is otherwise on this device than on the user's others. */
  readonly onlyHere: boolean
  /** None: nothing of it is here. */
  readonly local: Local | undefined
  /** On the server; not that of a life that is over. */
  readonly database: string | undefined
}

/** From what is kept and what stands in the documents. */
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
