import { describe, expect, test } from 'vitest'
import { placeOf } from '../../client/src/channels/here.ts'
import { localOf as localAmong, withLocals, type Binding } from '../../client/src/channels/locals.ts'

const channel = (state: string, database?: string) => ({ _id: 'photos', state, ...(database && { database }) })
const none = { locals: [] as Binding[], count: 0 }

const wanted = () => true

const localOf = ({ locals }: { readonly locals: readonly Binding[] }, one: ReturnType<typeof channel>) =>
  localAmong(locals, one)

/** The locals of a device that wants the channel and has seen it in these states, one after the other. */
const after = (...seen: ReturnType<typeof channel>[]) =>
  seen.reduce(
    (kept, one) => withLocals(kept, [one], wanted) ?? kept,
    none as { locals: readonly Binding[]; count: number },
  )

describe('the local database of a channel', () => {
  test('a local database exists from the start, and is bound to the first remote database', () => {
    const kept = after(channel('new'), channel('ready', 'a'))
    expect(kept.locals).toEqual([{ name: 'channel-1', channel: 'photos', database: 'a' }])
    expect(localOf(kept, channel('ready', 'a'))?.name).toBe('channel-1')
  })

  test('a local database is found before its binding is stored', () => {
    expect(localOf(after(channel('new')), channel('ready', 'a'))?.name).toBe('channel-1')
  })

  test('a channel keeps its local database while members change, also if the database field is missing', () => {
    const kept = after(channel('ready', 'a'), channel('new', 'a'), channel('new'), channel('ready', 'a'))
    expect(kept.locals).toHaveLength(1)
    expect(localOf(kept, channel('new'))?.name).toBe('channel-1')
  })

  test('a channel made again after a closing gets another local database at once', () => {
    const closed = after(channel('ready', 'a'), channel('closed', 'a'))
    expect(localOf(closed, channel('closed', 'a'))).toMatchObject({ name: 'channel-1', over: true })
    for (const made of [channel('new'), channel('new', 'a')]) {
      expect(localOf(withLocals(closed, [made], wanted)!, made)).toEqual({ name: 'channel-2', channel: 'photos' })
    }
    const again = withLocals(closed, [channel('new', 'a')], wanted)!
    expect(withLocals(again, [channel('new', 'a')], wanted)).toBeUndefined()
    const ready = withLocals(again, [channel('ready', 'b')], wanted)!
    expect(localOf(ready, channel('ready', 'b'))).toMatchObject({ name: 'channel-2', database: 'b' })
  })

  test('a channel made again while the device was away gets another local database', () => {
    const kept = after(channel('ready', 'a'), channel('ready', 'b'))
    expect(kept.locals.map(({ name, database }) => [name, database])).toEqual([
      ['channel-1', 'a'],
      ['channel-2', 'b'],
    ])
  })

  test('a removed member keeps the local database, and a new invitation uses it again', () => {
    const kept = after(channel('ready', 'a'), channel('removed', 'a'))
    expect(localOf(kept, channel('removed', 'a'))?.name).toBe('channel-1')
    expect(
      localOf(after(channel('ready', 'a'), channel('removed', 'a'), channel('ready', 'a')), channel('ready', 'a')),
    ).toEqual(kept.locals[0])
  })

  test('a channel that the device sees only after its end gets no local database', () => {
    for (const state of ['closed', 'removed']) {
      expect(localOf(after(channel(state, 'a')), channel(state, 'a'))).toBeUndefined()
    }
  })

  test.each([
    ['that was forgotten', { ...after(channel('ready', 'a')), locals: [] }],
    ['that the device never had', none],
    ['that the device had in an earlier life', after(channel('ready', 'other'))],
    ['that the device saw only as new and as closed', after(channel('new'))],
  ])('a channel %s gets a new local database when it is closed and made again', (_which, before) => {
    const closed = withLocals(before, [channel('closed', 'a')], wanted)!
    expect(withLocals(closed, [channel('closed', 'a')], wanted)).toBeUndefined()
    const made = channel('new', 'a')
    const again = withLocals(closed, [made], wanted)!
    const local = localOf(again, made)
    expect(local).toEqual({ name: `channel-${before.count + 1}`, channel: 'photos' })
    const ready = withLocals(again, [channel('ready', 'b')], wanted)!
    expect(localOf(ready, channel('ready', 'b'))).toEqual({ ...local, database: 'b' })
  })

  test('an unbound local database belongs to the first life that the device sees, even a closed one', () => {
    const closed = after(channel('new'), channel('closed', 'a'))
    expect(localOf(closed, channel('closed', 'a'))).toMatchObject({ name: 'channel-1', database: 'a', over: true })
  })

  test('an unwanted channel gets no local database, but an existing one is kept and bound', () => {
    const unwanted = () => false
    expect(withLocals(none, [channel('ready', 'a')], unwanted)).toBeUndefined()
    expect(withLocals(after(channel('new')), [channel('ready', 'a')], unwanted)!.locals).toEqual([
      { name: 'channel-1', channel: 'photos', database: 'a' },
    ])
  })

  test('a name of a local database is never used twice', () => {
    const forgotten = { ...after(channel('ready', 'a')), locals: [] }
    expect(withLocals(forgotten, [channel('ready', 'a')], wanted)!.locals[0]!.name).toBe('channel-2')
  })
})

test.each([
  ['new', undefined, 'active', {}, 'unready'],
  ['new', 'a', 'active', {}, 'synced'],
  ['ready', 'a', undefined, {}, 'unready'],
  ['ready', 'a', 'new', {}, 'unready'],
  ['ready', 'a', 'invite', {}, 'invited'],
  ['ready', 'a', 'active', {}, 'synced'],
  ['ready', 'a', 'active', { here: 'paused' }, 'paused'],
  ['ready', 'a', 'active', { there: 'paused' }, 'synced'],
  ['ready', 'a', 'paused', {}, 'paused'],
  ['ready', 'a', 'paused', { here: 'active' }, 'synced'],
  ['ready', 'a', 'ended', { here: 'active' }, 'ended'],
  ['closing', 'a', 'active', {}, 'closed'],
  ['closed', 'a', 'active', {}, 'closed'],
  ['removed', 'a', 'active', {}, 'removed'],
  ['error', undefined, 'active', {}, 'unready'],
  ['error', 'a', 'active', {}, 'synced'],
] as const)(
  'a channel in state %s with database %s and a subscription in state %s %j has the place %s',
  (state, database, to, devices, place) => {
    const subscription = to && { state: to, devices }
    expect(placeOf({ state, ...(database && { database }) }, subscription, 'here')).toBe(place)
  },
)
