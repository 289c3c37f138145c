import { expect, test } from 'vitest'
import { ownerHashOf } from '../../sidecar/devices/names.ts'
import { deleteDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { addDevice, channel, createControlDb, inState, newPerson, startWorker } from './rig.ts'

async function start(config: NonNullable<Parameters<typeof startWorker>[1]>['config'] = {}) {
  const controlDb = createControlDb()
  const worker = await startWorker(controlDb, { config })
  const ann = newPerson('ann')
  const phone = await addDevice(worker.couch, controlDb, ann)
  const own = phone.couch.db(await phone.database())
  const change = async (fields: object) => own.put({ ...(await own.get('photos')), ...fields })
  const photosIn = (state: string) => inState(worker.couch, own.name, 'photos', state)
  return { ...worker, ann, own, change, photosIn }
}

test('databases that were archived count as channels of their owner, as long as they are there', async () => {
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
    reason: 'an owner has 2 channels at most, with 2 that are archived',
  })

  await deleteDb(String(lives[0]))
  await change({ state: 'new' })
  const { database } = await photosIn('ready')
  expect(lives).not.toContain(database)
  expect(await couch.db(String(lives[1])).info()).toMatchObject({ db_name: lives[1] })
})

test('an owner names so many new addresses within an hour, however many edits that takes', async () => {
  const { control, ann, own, change, photosIn } = await start()
  const at = new Date().toISOString()
  const mails = Array.from({ length: 249 }, (_, i) => ({ key: `somebody-${i}`, at }))
  await control.put({ _id: `invitations:new-${ownerHashOf(ann.address)}`, type: 'mail_ledger', mails })
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
  await change({ state: 'new', members: [bob], data: { color: 'red' } }) // he is known
  expect(await photosIn('ready')).toMatchObject({ members: [bob], data: { color: 'red' } })
  expect(await control.withPrefix('account:')).toHaveLength(2)
})

test('who is in a thousand channels is invited to no more of them', async () => {
  const { control, ann, own, change, photosIn } = await start()
  const { address, role } = newPerson('bob')
  const channels = Array.from({ length: 1000 }, (_, i) => `channel:${i}`)
  const fields = { address, owner_role: role, user_id: 'user-bob', devices: [], channels }
  const record = { type: 'channel_record', state: 'ready', owner: 'eve@example.com', members: [address], former: [] }
  const database = uniqueName('channel-none')
  await control.bulk(channels.map((_id) => JSON.stringify({ _id, ...record, database })))
  await control.put({ _id: `account:${ownerHashOf(address)}`, type: 'account', state: 'ready', ...fields })
  await own.put(channel(ann, 'photos', { members: [address] }))
  expect((await photosIn('error')).error).toMatchObject({ code: 'member_full' })

  await control.put({ ...(await control.get(channels[0]!)), members: [] })
  await change({ state: 'new' })
  await photosIn('ready')
  await eventually(async () =>
    expect((await control.withPrefix('invitation:')).map(({ member }) => member)).toEqual([address]),
  )
})
