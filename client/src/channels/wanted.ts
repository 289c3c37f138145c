import type { SubscriptionDoc } from '../control/control-documents.ts'
import type { Place } from '../client-status.ts'

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
export const exceptionOf = (
  subscription: Pick<SubscriptionDoc, 'devices'> | undefined,
  user: string | undefined,
): string | undefined => (user === undefined ? undefined : subscription?.devices?.[user])
