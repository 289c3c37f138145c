/** What an owner wishes of a channel. Written locally, at once; the sidecar answers when it gets it. */
import { randomHex } from '../registration/credentials.ts'
import { isAddress } from '../registration/registration.ts'
import { ClientError } from '../errors.ts'
import type { Db } from '../pouch.ts'
import { isLine, isWholeIn, LINE } from '../text.ts'
import { change } from './change.ts'
import { isOwn, type ChannelDoc } from './documents.ts'

export interface NewChannel {
  /** Among the channels of an owner no two have the same. */
  readonly name: string
  /** Addresses. */
  readonly members?: readonly string[]
  /** The app's own, for all members: an object of up to 4 KB. */
  readonly data?: Readonly<Record<string, unknown>>
  /**
   * Of its document; default: a random one. The same on several devices: one channel, made by whichever comes first.
   * That of a channel that is closed, or in `error`: makes it again.
   */
  readonly id?: string
}

export type Close = 'archive' | 'delete'

/** Resolves with its id. One that is there already stays as it is. */
export async function createChannel(db: Db, owner: string, channel: NewChannel): Promise<string> {
  const { name, members = [], data, id = randomHex() } = channel
  if (!isLine(name, 100) || name.trim() === '')
    throw new ClientError('bad_argument', `name: expected 1 to 100 ${LINE}, got ${JSON.stringify(name)}`)
  if (/^(device-|channel:|_)/.test(id) || !isLine(id, 180))
    throw new ClientError(
      'bad_argument',
      `id: expected 1 to 180 ${LINE}, not device-, channel: or _ first, got ${JSON.stringify(id)}`,
    )
  expectAddresses(members)
  expectData(data)
  await change(db, id, (before) => {
    if (before && before.type !== 'channel')
      throw new ClientError(
        'bad_argument',
        `id: expected that of a channel, or none, got that of a ${String(before.type)}`,
      )
    const isOver = before?.state === 'closed' || before?.state === 'error'
    if (before && !isOver) return undefined
    // What the sidecar wrote stays: by the old database it knows that this is another life, by the role whose it is.
    return {
      ...givenOf(before ?? {}),
      ...{ type: 'channel', state: 'new', name, owner, members: [...members], ...(data && { data }) },
    }
  })
  return id
}

const givenOf = (before: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    ['database', 'syncpoint', 'owner_role'].flatMap((key) => (key in before ? [[key, before[key]]] : [])),
  )

export type ChannelChange = Pick<NewChannel, 'members' | 'data'>

export async function changeChannel(db: Db, id: string, { members, data }: ChannelChange): Promise<void> {
  if (members) expectAddresses(members)
  expectData(data)
  await change(db, id, (before) => {
    const { close: _close, ...channel } = ownChannel(before, id, ['new', 'accepted', 'ready', 'error'])
    return { ...channel, state: 'new', ...(members && { members: [...members] }), ...(data && { data }) }
  })
}

/** What was made while nobody had confirmed the address, under another one: it was mistyped. */
export async function changeOwner(db: Db, channels: readonly ChannelDoc[], owner: string): Promise<void> {
  for (const { _id } of channels.filter(isOwn)) {
    await change(db, _id, (before) => (before?.owner === owner ? undefined : { ...before, owner }))
  }
}

export async function closeChannel(db: Db, id: string, close: Close): Promise<void> {
  if (!['archive', 'delete'].includes(close))
    throw new ClientError('bad_argument', `close: expected "archive" or "delete", got ${String(close)}`)
  await change(db, id, (before) => ({ ...ownChannel(before, id, ['new', 'ready', 'error']), state: 'closing', close }))
}

function expectAddresses(members: readonly string[]): void {
  const wrong = members.find((member) => !isAddress(member))
  if (wrong !== undefined)
    throw new ClientError('bad_argument', `members: expected email addresses, got ${JSON.stringify(wrong)}`)
}

/** It stands in the database of each member. */
const MOST_DATA = 4096

function expectData(data: object | undefined): void {
  if (data === undefined) return
  const size = isObject(data) && isWholeIn(data) ? JSON.stringify(data).length : Infinity
  if (size <= MOST_DATA) return
  const got = size === Infinity ? 'something else' : `${size}`
  const expected = `an object of up to ${MOST_DATA} characters of JSON, none of them half`
  throw new ClientError('bad_argument', `data: expected ${expected}, got ${got}`)
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

function ownChannel(before: object | undefined, id: string, states: readonly string[]): Record<string, unknown> {
  const channel = before as (ChannelDoc & Record<string, unknown>) | undefined
  if (channel?.type !== 'channel') throw new ClientError('unknown', `there is no channel ${id} in the control database`)
  if (!isOwn(channel)) throw new ClientError('not_yours', `only ${channel.owner}, its owner, changes the channel ${id}`)
  if (states.includes(channel.state)) return channel
  throw new ClientError(
    'wrong_state',
    `expected a channel that is ${states.join(' or ')}, got one that is ${channel.state}`,
  )
}
