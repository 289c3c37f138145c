import { expect, test, vi } from 'vitest'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import { createNewcomers } from '../../sidecar/channels/records/newcomers.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { ownerHashOf } from '../../sidecar/accounts/owner.ts'
import { deleteDb, freshDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import { addDevice, channel, databaseOf, inState, newPerson, startWithOwner, type WorkerOptions } from './rig.ts'

async function start(config: WorkerOptions['config'] = {}) {
  const all = await startWithOwner({ config })
  const { couch, own } = all
  const change = async (fields: object) => own.put({ ...(await own.get('photos')), ...fields })
  const photosIn = (state: string) => inState(couch, own.name, 'photos', state)
  return { ...all, change, photosIn }
}

thoroughTest('archived databases count as channels of their owner until they are deleted', async () => {
  const { couch, ann, own, change, photosIn } = await start({ channelsPerOwner: 2 })
  await own.put(channel(ann, 'photos'))
  const lives: unknown[] = []
  for (const _life of [1, 2]) {
    lives.push((await photosIn('ready')).database)
    await change({ state: 'closing', close: 'archive' })
    await photosIn('closed')
    await change({ state: 'new' })
  }
  const { error } = await photosIn('error')
  expect(error).toMatchObject({
    code: 'too_many_channels',
    reason: 'an owner may have 2 channels, including 2 that are archived',
  })

  await deleteDb(String(lives[0]))
  await change({ state: 'new' })
  const { database } = await photosIn('ready')
  expect(lives).not.toContain(database)
  expect(await couch.db(String(lives[1])).info()).toMatchObject({ db_name: lives[1] })
})

test('an owner can invite a limited number of new addresses within an hour, over any number of edits', async () => {
  const { control, ann, own, change, photosIn } = await start()
  const at = new Date().toISOString()
  const mails = Array.from({ length: 249 }, (_, i) => ({ key: `somebody-${i}`, at }))
  await control.put({
    _id: `invitations:new-${ownerHashOf(normaliseAddress(ann.address))}`,
    type: 'mail_ledger',
    mails,
  })
  const [bob, carl] = ['bob', 'carl'].map((name) => newPerson(name).address)
  await own.put(channel(ann, 'photos', { members: [bob, carl] }))
  const { error } = await photosIn('error')
  expect(error).toMatchObject({ code: 'too_many_invitations', reason: expect.stringMatching(/^members: /) as string })
  expect(await control.withPrefix('account:')).toHaveLength(1)

  await change({ state: 'new', members: [bob] })
  await photosIn('ready')
  await change({ state: 'new', members: [bob, carl] })
  expect((await photosIn('error')).error).toMatchObject({ code: 'too_many_invitations' })
  expect(await control.withPrefix('channel:')).toMatchObject([{ members: [bob] }])
  await change({ state: 'new', members: [bob], data: { color: 'red' } }) // Bob is known already
  expect(await photosIn('ready')).toMatchObject({ members: [bob], data: { color: 'red' } })
  expect(await control.withPrefix('account:')).toHaveLength(2)
})

test('requests made offline that arrive together are counted without a conflict', async () => {
  const control = await freshDb('control')
  const puts = vi.spyOn(control, 'put')
  const none = { among: () => Promise.resolve([]) }
  const newcomers = createNewcomers({ accounts: none, records: none, control, clock: systemClock })
  const requests = Array.from({ length: 32 }, (_, i) =>
    newcomers.refusal(normaliseAddress('ann@example.com'), [normaliseAddress(`${i}@example.com`)], {}),
  )
  expect(await Promise.all(requests)).toEqual(requests.map(() => undefined))
  expect(puts).toHaveBeenCalledTimes(32)
})

test('the error code does not reveal whether a member has a device', async () => {
  const { control, ann, own, couch } = await start()
  const [known, unknown] = [newPerson('bob'), newPerson('carl')]
  await addDevice(couch, control.name, known)
  await databaseOf(couch, control.name, known.address)
  await own.put(channel(ann, 'known', { members: [known.address] }))
  await own.put(channel(ann, 'unknown', { members: [unknown.address] }))
  for (const id of ['known', 'unknown']) await inState(couch, own.name, id, 'ready')

  const ledger = `invitations:new-${ownerHashOf(normaliseAddress(ann.address))}`
  const mails = Array.from({ length: 250 }, (_, i) => ({ key: `somebody-${i}`, at: new Date().toISOString() }))
  await eventually(async () => control.put({ ...(await control.get(ledger)), mails }))
  const reasons: unknown[] = []
  for (const [id, { address }] of Object.entries({ 'photos-1': known, 'photos-2': unknown })) {
    await own.put(channel(ann, id, { members: [address] }))
    const { error } = await inState(couch, own.name, id, 'error')
    reasons.push({ ...(error as object), at: undefined })
  }
  expect(reasons[0]).toMatchObject({ code: 'too_many_invitations' })
  expect(reasons[1]).toEqual(reasons[0])
})

thoroughTest('a member of a thousand channels cannot be added to another one', async () => {
  const { control, ann, own, change, photosIn } = await start()
  const { address, role } = newPerson('bob')
  const channels = Array.from({ length: 1000 }, (_, i) => `channel:${i}`)
  const fields = { address, owner_role: role, user_id: 'user-bob', devices: [], channels }
  const record = { type: 'channel_record', state: 'ready', owner: 'eve@example.com', members: [address], former: [] }
  const database = uniqueName('channel-none')
  await control.bulk(channels.map((_id) => JSON.stringify({ _id, ...record, database })))
  await control.put({
    _id: `account:${ownerHashOf(normaliseAddress(address))}`,
    type: 'account',
    state: 'ready',
    ...fields,
  })
  await own.put(channel(ann, 'photos', { members: [address] }))
  expect((await photosIn('error')).error).toMatchObject({ code: 'member_full' })

  await control.put({ ...(await control.get(channels[0]!)), members: [] })
  await change({ state: 'new' })
  await photosIn('ready')
  await eventually(async () =>
    expect((await control.withPrefix('invitation:')).map(({ member }) => member)).toEqual([address]),
  )
})
