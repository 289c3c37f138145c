import type { SubscriptionDoc } from '../control/control-documents.ts'
import type { Place } from '../client-status.ts'

/** What a channel is to this device, by the documents alone. Only one that is `synced` is. */
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
  // One whose members are being changed is `new`, too, and goes on; one in `error` may be there.
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

/** Undefined: as on all other devices. */
export const exceptionOf = (
  subscription: Pick<SubscriptionDoc, 'devices'> | undefined,
  user: string | undefined,
): string | undefined => (user === undefined ? undefined : subscription?.devices?.[user])
