/**
 * Maps channels to local databases. A local database syncs with one remote database for ever. A channel that was closed
 * and created again has a new database on the server, so it gets a new local one. Before the server creates a database,
 * the local one is unbound; it is bound to the first remote database. The end of a life stays recorded.
 */
import type { ChannelDoc } from '../control/control-documents.ts'
import type { Kept } from '../store.ts'

/** One life of a channel, as this device knows it. */
export interface Binding {
  /** Name of the local database, without the app's prefix. Undefined: only the record that this life is over. */
  readonly name?: string
  /** `_id` of the channel's document. */
  readonly channel: string
  /** The remote database that the local one syncs with. */
  readonly database?: string
  readonly over?: true
}

export type Local = Binding & { readonly name: string }

export const isLocal = (binding: Binding): binding is Local => binding.name !== undefined

/** The bindings of a channel, by its id. */
export function byChannel(locals: readonly Binding[]): (id: string) => readonly Binding[] {
  const own = new Map<string, Binding[]>()
  for (const one of locals) own.set(one.channel, [...(own.get(one.channel) ?? []), one])
  return (id) => own.get(id) ?? []
}

type Known = Pick<ChannelDoc, '_id' | 'state' | 'database'>

/**
 * The channel without the database of a life that is over. A channel that is created again names the old database until
 * it has a new one. Until then, a device that missed the end takes the old database for the current one.
 */
export function asNow<Channel extends Known>(own: readonly Binding[], channel: Channel): Channel {
  const isOver = own.some(({ database, over }) => over && database !== undefined && database === channel.database)
  if (!isOver || hasEnded(channel.state)) return channel
  const { database: _former, ...rest } = channel
  return rest as Channel
}

/**
 * Adds a local database for each channel that needs one, and the end of each closed life. Undefined if nothing changes.
 *
 * @param isWanted whether this channel needs a local database
 */
export function withLocals<Channel extends Known>(
  kept: Kept,
  channels: readonly Channel[],
  isWanted: (channel: Channel) => boolean,
): Kept | undefined {
  const own = byChannel(kept.locals)
  const next = channels.reduce((now, channel) => withLocalOf(now, own(channel._id), channel, isWanted(channel)), kept)
  return next === kept ? undefined : next
}

/** The current local database of a channel; undefined if this device has no data of it. */
export function localOf(own: readonly Binding[], channel: Known): Local | undefined {
  const { state, database } = asNow(own, channel)
  const locals = own.filter(isLocal)
  const bound = database === undefined ? undefined : locals.find((one) => one.database === database)
  return bound ?? waitingOf(locals) ?? (database === undefined || hasEnded(state) ? locals.at(-1) : undefined)
}

const hasEnded = (state: string): boolean => state === 'closed' || state === 'removed'

function withLocalOf(kept: Kept, own: readonly Binding[], channel: Known, isWanted: boolean): Kept {
  const { _id, state, database } = asNow(own, channel)
  if (state === 'closed') return withEnd(kept, own, channel)
  if (state === 'removed') return kept
  if (database === undefined) return own.at(-1)?.over || own.length === 0 ? added(kept, { channel: _id }) : kept
  if (own.some((one) => one.database === database)) return kept
  const waiting = waitingOf(own)
  if (waiting) return changed(kept, waiting, { database })
  return isWanted ? added(kept, { channel: _id, database }) : kept
}

/** The binding that waits for its first remote database. */
function waitingOf<One extends Binding>(own: readonly One[]): One | undefined {
  const last = own.at(-1)
  return last && last.database === undefined && !last.over ? last : undefined
}

/** Records the end even without local data: a device that creates the channel again names the database of this life. */
function withEnd(kept: Kept, own: readonly Binding[], { _id, database }: Known): Kept {
  const bound = own.find((one) => one.database === database)
  const isUnknown = database !== undefined && !bound
  const ended = waitingOf(own) ?? (database === undefined ? own.at(-1) : bound)
  if (ended) return changed(kept, ended, { ...(isUnknown && { database }), over: true })
  return isUnknown ? { ...kept, locals: [...kept.locals, { channel: _id, database, over: true }] } : kept
}

function added(kept: Kept, binding: Omit<Binding, 'name'>): Kept {
  const count = kept.count + 1
  return { ...kept, count, locals: [...kept.locals, { ...binding, name: `channel-${count}` }] }
}

function changed(kept: Kept, binding: Binding, fields: Partial<Binding>): Kept {
  const isBound = Object.entries(fields).every(([key, value]) => binding[key as keyof Binding] === value)
  if (isBound) return kept
  return { ...kept, locals: kept.locals.map((one) => (one === binding ? { ...one, ...fields } : one)) }
}
