import { Reject, SidecarError } from '../../core/errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import type { Context } from '../../docstate/types.ts'
import type { Subscription } from '../documents.ts'
import { subscriptionFaults } from '../shape.ts'
import { comeBack, type LeavingOptions } from './subscription-left.ts'

/** States of a channel that can be subscribed to: the database is there, or may be yet. */
const SUBSCRIBABLE = ['new', 'accepted', 'ready', 'error']

/** subscription new → active, where there is such a channel. It may come before it: replication has no order. */
export const activate = (options: LeavingOptions) => async (subscription: Subscription & StoredDoc, ctx: Context) => {
  const { withdrawn: _before, ...doc } = subscription
  const faults = subscriptionFaults(doc)
  if (faults.length > 0) throw new Reject('bad_subscription', faults.join('; '))
  if (await comeBack(subscription, options, ctx)) return { ...doc, state: 'active' as const }
  const channel = await ctx.find(doc.channel_id)
  if (!channel) throw new SidecarError('no_channel', `there is no channel ${doc.channel_id} yet`)
  if (channel.type === 'channel' && SUBSCRIBABLE.includes(String(channel.state)))
    return { ...doc, state: 'active' as const }
  const got = channel.type === 'channel' ? `one that is ${String(channel.state)}` : 'something else'
  throw new Reject('no_channel', `channel_id: expected a channel that is there or is to be, got ${got}`)
}
