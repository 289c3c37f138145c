import { Reject, SidecarError } from '../../core/errors.ts'
import type { StoredDoc, Doc } from '../../couch/documents.ts'
import type { Context } from '../../docstate/types.ts'
import type { Subscription } from '../channel-documents.ts'
import { subscriptionFaults } from '../shape.ts'
import { comeBack, type LeavingOptions } from './subscription-left.ts'
import { isObject } from '../../../ddocs/lib/document.ts'
import { mergeFields, type Resolver } from '../../docstate/conflicts/merge.ts'

/** States of a channel that can be subscribed to: its database exists, or may exist later. */
const SUBSCRIBABLE = ['new', 'accepted', 'ready', 'error']

/** subscription new → active, if the channel exists. The subscription may arrive first: replication has no order. */
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
  throw new Reject('no_channel', `channel_id: expected a channel that exists or will exist, got ${got}`)
}

/** Merges two subscriptions, device by device: each device may have made its own exception. */
export const mergeSubscription: Resolver = (conflict) => {
  const [ours, theirs, base] = [conflict.ours, conflict.theirs, conflict.base].map(devicesOf)
  const changed = Object.entries(theirs!).filter(([device, state]) => base![device] !== state)
  const gone = Object.keys(base!).filter((device) => !(device in theirs!))
  const devices = Object.fromEntries(
    Object.entries({ ...ours, ...Object.fromEntries(changed) }).filter(([device]) => !gone.includes(device)),
  )
  const { devices: _devices, ...merged } = mergeFields(conflict) as Doc & { devices?: unknown }
  return { ...merged, ...(Object.keys(devices).length > 0 && { devices }) }
}

const devicesOf = (doc: Doc | undefined): Readonly<Record<string, unknown>> =>
  isObject(doc?.devices) ? doc.devices : {}
