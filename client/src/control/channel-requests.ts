/** Requests of an owner about channels. Each is written locally at once; the sidecar answers when it arrives. */
import { randomHex } from '../registration/credentials.ts'
import { isAddress } from '../registration/registration.ts'
import { ClientError } from '../errors.ts'
import type { Db } from '../pouch.ts'
import { isLine, isWholeIn, LINE } from '../text.ts'
import { change } from './change.ts'
import { isOwn, type ChannelDoc } from './control-documents.ts'

export interface NewChannel {
  /** Unique among the channels of an owner. */
  readonly name: string
  /** Email addresses. */
  readonly members?: readonly string[]
  /** The app's own data, for all members: an object of up to 4 KB. */
  readonly data?: Readonly<Record<string, unknown>>
  /**
   * Id of the channel's document. Default: a random one. If several devices use the same id, the first one creates the
   * channel.
   *
   * With the id of a closed channel, creates it again. With that of a channel in `error`, repeats the request: with the
   * former members and data, unless new ones are given. A channel that was changed twice stays as it is, because it
   * exists.
   */
  readonly id?: string
}

type Fields = Readonly<Record<string, unknown>>

export type Close = 'archive' | 'delete'

/** Resolves with the channel's id. An existing channel stays as it is. */
export async function createChannel(db: Db, owner: string, channel: NewChannel): Promise<string> {
  const { name, members, data, id = randomHex() } = channel
  if (!isLine(name, 100) || name.trim() === '')
    throw new ClientError('bad_argument', `name: expected 1 to 100 ${LINE}, got ${JSON.stringify(name)}`)
  if (/^(device-|channel:|_)/.test(id) || !isLine(id, 180))
    throw new ClientError(
      'bad_argument',
      `id: expected 1 to 180 ${LINE}, not device-, channel: or _ first, got ${JSON.stringify(id)}`,
    )
  if (members) expectAddresses(members)
  expectData(data)
  await change(db, id, (before) => {
    if (before && before.type !== 'channel')
      throw new ClientError(
        'bad_argument',
        `id: expected that of a channel, or none, got that of a ${String(before.type)}`,
      )
    const isRefused = before?.state === 'error' && !isChangedTwice(before)
    if (before && before.state !== 'closed' && !isRefused) return undefined
    // The sidecar's fields stay: it recognizes another life by the old database, and the owner by the role. Refused
    // members and data stay, too, unless new ones are given. The refused request may be a change of a channel that has
    // members.
    return {
      ...givenOf(before ?? {}, isRefused ? [...GIVEN, 'members', 'data'] : GIVEN),
      ...{ type: 'channel', state: 'new', name, owner },
      ...(members ? { members: [...members] } : !isRefused && { members: [] }),
      ...(data && { data }),
    }
  })
  return id
}

/** Fields that the sidecar writes. */
const GIVEN = ['database', 'syncpoint', 'owner_role']

const givenOf = (before: Fields, keys: readonly string[]) =>
  Object.fromEntries(keys.flatMap((key) => (key in before ? [[key, before[key]]] : [])))

/** The channel continues unchanged, and its owner must decide between the changes. */
const isChangedTwice = ({ error }: Fields): boolean =>
  (error as { code?: string } | undefined)?.code === 'changed_twice'

/** Fields that are left out stay. */
export interface ChannelChange extends Pick<NewChannel, 'members'> {
  /** `null` removes the data. */
  readonly data?: NewChannel['data'] | null
}

export async function changeChannel(db: Db, id: string, { members, data }: ChannelChange): Promise<void> {
  if (members) expectAddresses(members)
  expectData(data ?? undefined)
  await change(db, id, (before) => {
    const { close: _close, data: known, ...channel } = ownChannel(before, id)
    const now = data === undefined ? known : data
    return { ...channel, state: 'new', ...(members && { members: [...members] }), ...(isObject(now) && { data: now }) }
  })
}

/** Corrects the owner of channels that were created under a mistyped address, which was never confirmed. */
export async function changeOwner(db: Db, channels: readonly ChannelDoc[], owner: string): Promise<void> {
  for (const { _id } of channels.filter(isOwn)) {
    await change(db, _id, (before) => (before?.owner === owner ? undefined : { ...before, owner }))
  }
}

export async function closeChannel(db: Db, id: string, close: Close): Promise<void> {
  if (!['archive', 'delete'].includes(close))
    throw new ClientError('bad_argument', `close: expected "archive" or "delete", got ${String(close)}`)
  await change(db, id, (before) => ({ ...ownChannel(before, id), state: 'closing', close }))
}

/** The limits of the server: members, and bytes of JSON. */
const [MOST_MEMBERS, MOST_ADDRESSES] = [250, 16_384]

function expectAddresses(members: readonly string[]): void {
  const wrong = members.find((member) => !isAddress(member))
  if (wrong !== undefined)
    throw new ClientError('bad_argument', `members: expected email addresses, got ${JSON.stringify(wrong)}`)
  const size = bytesOf(members)
  if (members.length <= MOST_MEMBERS && size <= MOST_ADDRESSES) return
  const expected = `up to ${MOST_MEMBERS} addresses, and ${MOST_ADDRESSES} bytes of JSON`
  throw new ClientError('bad_argument', `members: expected ${expected}, got ${members.length} and ${size}`)
}

/** The limit of the server, in bytes: the database of each member holds a copy. */
const MOST_DATA = 4096

const bytesOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length

function expectData(data: object | undefined): void {
  if (data === undefined) return
  const size = isObject(data) && isWholeIn(data) ? bytesOf(data) : Infinity
  if (size <= MOST_DATA) return
  const got = size === Infinity ? 'something else' : `${size}`
  const expected = `an object of up to ${MOST_DATA} bytes of JSON, without unpaired surrogates`
  throw new ClientError('bad_argument', `data: expected ${expected}, got ${got}`)
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

/** States in which the owner may change or close a channel. */
const OPEN = ['new', 'accepted', 'ready', 'error']

function ownChannel(before: object | undefined, id: string): Record<string, unknown> {
  const channel = before as (ChannelDoc & Record<string, unknown>) | undefined
  if (channel?.type !== 'channel') throw new ClientError('unknown', `there is no channel ${id} in the control database`)
  if (!isOwn(channel))
    throw new ClientError('not_yours', `only its owner, ${channel.owner}, may change the channel ${id}`)
  if (OPEN.includes(channel.state)) return channel
  throw new ClientError(
    'wrong_state',
    `expected a channel that is ${OPEN.join(' or ')}, got one that is ${channel.state}`,
  )
}
