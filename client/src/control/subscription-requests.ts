/** Requests of a user about subscriptions, on all devices or on this one, and about devices. */
import { ClientError } from '../errors.ts'
import type { Db } from '../pouch.ts'
import { change } from './change.ts'
import { isOwn, subscriptionIdOf, type SubscriptionDoc } from './control-documents.ts'

export interface Where {
  /** Only on this device; the user's other devices do not change. */
  readonly onlyHere?: boolean
}

/** Accepts an invitation, or a channel that the user ended or left before. */
export const accept = (db: Db, channelId: string): Promise<void> =>
  write(db, channelId, ['invite', 'ended', 'left'], ({ state }) => ({ state: state === 'invite' ? 'active' : 'new' }))

export const decline = (db: Db, channelId: string): Promise<void> =>
  write(db, channelId, ['invite'], () => ({ state: 'ended' }))

export const end = (db: Db, channelId: string): Promise<void> =>
  write(db, channelId, ['new', 'invite', 'active', 'paused'], () => ({ state: 'ended' }))

/** Ends the user's membership until `accept`. */
export const leave = async (db: Db, channelId: string): Promise<void> => {
  if (isOwn({ _id: channelId }))
    throw new ClientError('wrong_state', `${channelId} is your own channel: close it instead of leaving it`)
  await write(db, channelId, ['invite', 'active', 'paused', 'ended'], () => ({ state: 'left' }))
}

/** Pauses or resumes. Writes an exception only if this device must differ from the others. */
export const setPaused = (
  db: Db,
  channelId: string,
  user: string,
  wanted: 'active' | 'paused',
  { onlyHere = false }: Where,
): Promise<void> =>
  write(db, channelId, ['active', 'paused'], ({ state, devices = {} }) => {
    const { [user]: _here, ...others } = devices
    const next = onlyHere ? state : wanted
    return { state: next, devices: next === wanted ? others : { ...others, [user]: wanted } }
  })

export const revokeDevice = (db: Db, user: string): Promise<void> =>
  change(db, user, (before) => {
    if (before?.type !== 'device')
      throw new ClientError('unknown', `there is no device ${user} in the control database`)
    return before.state === 'revoked' ? undefined : { ...before, state: 'revoked' }
  })

const write = (
  db: Db,
  channelId: string,
  states: readonly string[],
  next: (before: SubscriptionDoc) => { readonly state: string; readonly devices?: Readonly<Record<string, string>> },
): Promise<void> =>
  change(db, subscriptionIdOf(channelId), (before) => {
    if (before?.type !== 'subscription')
      throw new ClientError(
        'wrong_state',
        `there is no subscription of ${channelId} yet: wait until the channel is ready`,
      )
    const subscription = before as unknown as SubscriptionDoc
    if (!states.includes(subscription.state)) {
      const reason = `expected a subscription that is ${states.join(' or ')}, got one that is ${subscription.state}`
      throw new ClientError('wrong_state', reason)
    }
    const { devices, ...fields } = { ...subscription, ...next(subscription) }
    return { ...fields, ...(devices && Object.keys(devices).length > 0 && { devices }) }
  })
