/**
 * Which local database belongs to which channel. One is synced with one remote database for ever: a channel that was closed
 * and made again has another one on the server, so it gets another one here. While the server has made none yet, the
 * local one is bound to none; it will be to the first.
 */
import type { ChannelDoc } from '../control/documents.ts'
import type { Kept } from '../store.ts'

/** A local database. */
export interface Binding {
  /** Without the app's. */
  readonly name: string
  /** `_id` of the channel's document. */
  readonly channel: string
  /** The remote database that it is synced with. */
  readonly database?: string
  /** The life that it was of is over. */
  readonly over?: true
}

type Known = Pick<ChannelDoc, '_id' | 'state' | 'database'>

/**
 * The channel without the database of a life that is over: one that is made again names it until it has another. Whoever
 * did not see the end takes it for the one that it was, until there is another.
 */
export function asNow<Channel extends Known>({ locals }: Pick<Kept, 'locals'>, channel: Channel): Channel {
  const isOver = locals.some(({ database, over }) => over && database !== undefined && database === channel.database)
  if (!isOver || hasEnded(channel.state)) return channel
  const { database: _former, ...rest } = channel
  return rest as Channel
}

/**
 * With a local database for each channel that is to have one; undefined where all have.
 *
 * @param isWanted whether one is to be made for this channel
 */
export function withLocals<Channel extends Known>(
  kept: Kept,
  channels: readonly Channel[],
  isWanted: (channel: Channel) => boolean,
): Kept | undefined {
  const next = channels.reduce((before, channel) => withLocalOf(before, channel, isWanted(channel)), kept)
  return next === kept ? undefined : next
}

/** The local database of a channel as it is now. None: nothing of it was ever here. */
export function localOf(kept: Pick<Kept, 'locals'>, channel: Known): Binding | undefined {
  const { _id, state, database } = asNow(kept, channel)
  const own = kept.locals.filter(({ channel }) => channel === _id)
  const bound = database === undefined ? undefined : own.find((one) => one.database === database)
  return bound ?? (database === undefined || hasEnded(state) ? own.at(-1) : undefined)
}

const hasEnded = (state: string): boolean => state === 'closed' || state === 'removed'

function withLocalOf(kept: Kept, channel: Known, isWanted: boolean): Kept {
  const { _id, state, database } = asNow(kept, channel)
  const own = kept.locals.filter(({ channel }) => channel === _id)
  if (state === 'closed') return changed(kept, own.at(-1), { over: true })
  if (state === 'removed') return kept
  if (database === undefined) return own.at(-1)?.over || own.length === 0 ? added(kept, { channel: _id }) : kept
  if (own.some((one) => one.database === database)) return kept
  const last = own.at(-1)
  if (last && last.database === undefined && !last.over) return changed(kept, last, { database })
  return isWanted ? added(kept, { channel: _id, database }) : kept
}

function added(kept: Kept, binding: Omit<Binding, 'name'>): Kept {
  const count = kept.count + 1
  return { ...kept, count, locals: [...kept.locals, { ...binding, name: `channel-${count}` }] }
}

function changed(kept: Kept, binding: Binding | undefined, fields: Partial<Binding>): Kept {
  const isThere = !binding || Object.entries(fields).every(([key, value]) => binding[key as keyof Binding] === value)
  if (isThere) return kept
  return { ...kept, locals: kept.locals.map((one) => (one === binding ? { ...one, ...fields } : one)) }
}
