/** What an owner requests of a channel. Written locally, at once; the sidecar answers when the request arrives. */
import { randomHex } from '../registration/credentials.ts'
import { isAddress } from '../registration/registration.ts'
import { ClientError } from '../errors.ts'
import type { Db } from '../pouch.ts'
import { isLine, isWholeIn, LINE } from '../text.ts'
import { change } from './change.ts'
import { isOwn, type ChannelDoc } from './control-documents.ts'

export interface NewChannel {
  /** Among the channels of an owner no two have the same. */
  readonly name: string
  /** Addresses. */
  readonly members?: readonly string[]
  /** The app's own, for all members: an object of up to 4 KB. */
  readonly data?: Readonly<Record<string, unknown>>
  /**
   * Of its document; default: a random one. The same on several devices: one channel, made by whichever comes first.
   * That of a channel that is closed: makes it again. In `error`: asks for it again, with the members and the data that it has
   * unless others are given; but if it was changed twice, it stays so, since there is one.
   */
  readonly id?: string
}

type Fields = Readonly<Record<string, unknown>>

export type Close = 'archive' | 'delete'

/** Resolves with its id. One that is there already stays as it is. */
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
    // What the sidecar wrote stays: by the old database it knows that this is another life, by the role whose it is. So does
    // what was refused, unless other things are asked for now: it may be a change of a channel that has members.
    return {
      ...givenOf(before ?? {}, isRefused ? [...GIVEN, 'members', 'data'] : GIVEN),
      ...{ type: 'channel', state: 'new', name, owner },
      ...(members ? { members: [...members] } : !isRefused && { members: [] }),
      ...(data && { data }),
    }
  })
  return id
}

/** Written by the sidecar. */
const GIVEN = ['database', 'syncpoint', 'owner_role']

const givenOf = (before: Fields, keys: readonly string[]) =>
  Object.fromEntries(keys.flatMap((key) => (key in before ? [[key, before[key]]] : [])))

/** It goes on as it was, and its owner is to say what is meant. */
const isChangedTwice = ({ error }: Fields): boolean =>
  (error as { code?: string } | undefined)?.code === 'changed_twice'

/** What is left out stays. */
export interface ChannelChange extends Pick<NewChannel, 'members'> {
  /** None any more: `null`. */
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

/** What was made under another address that was not confirmed: it was mistyped. */
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

/** As the server has it. */
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

/** As the server has it: it stands in the database of each member. */
const MOST_DATA = 4096

const bytesOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length

function expectData(data: object | undefined): void {
  if (data === undefined) return
  const size = isObject(data) && isWholeIn(data) ? bytesOf(data) : Infinity
  if (size <= MOST_DATA) return
  const got = size === Infinity ? 'something else' : `${size}`
  const expected = `an object of up to ${MOST_DATA} bytes of JSON, no character of it half`
  throw new ClientError('bad_argument', `data: expected ${expected}, got ${got}`)
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

/** In these its owner may change it, or close it. */
const OPEN = ['new', 'accepted', 'ready', 'error']

function ownChannel(before: object | undefined, id: string): Record<string, unknown> {
  const channel = before as (ChannelDoc & Record<string, unknown>) | undefined
  if (channel?.type !== 'channel') throw new ClientError('unknown', `there is no channel ${id} in the control database`)
  if (!isOwn(channel)) throw new ClientError('not_yours', `only ${channel.owner}, its owner, changes the channel ${id}`)
  if (OPEN.includes(channel.state)) return channel
  throw new ClientError(
    'wrong_state',
    `expected a channel that is ${OPEN.join(' or ')}, got one that is ${channel.state}`,
  )
}
