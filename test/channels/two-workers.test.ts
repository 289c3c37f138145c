import { expect, test } from 'vitest'
import { isRecord } from '../../sidecar/channels/channel-documents.ts'
import { channelDatabases } from '../support/channel-databases.ts'
import { eventually } from '../support/eventually.ts'
import type { Message } from '../../sidecar/docstate/mail.ts'
import { thoroughTest } from '../support/thorough.ts'
import { addDevice, channel, createControlDb, inState, newPerson, rolesOf, startWorker } from './rig.ts'
import { answerOf } from '../support/answers.ts'

/** Each worker takes every document, like workers that do not see each other. */
test('two workers that do everything twice make one database for each channel, and send each mail once', async () => {
  const controlDb = createControlDb()
  const mails: Message[] = []
  const { couch, control } = await startWorker(controlDb, { mails })
  await startWorker(controlDb, { mails })
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const strangers = [newPerson('carl'), newPerson('dora')]
  const phones = await Promise.all([ann, ann, bob].map((person) => addDevice(couch, controlDb, person)))
  const [phone, tablet, his] = phones as [(typeof phones)[0], (typeof phones)[0], (typeof phones)[0]]
  const [anns, bobs] = [await phone.database(), await his.database()]

  const names = ['photos', 'diary', 'plans'] // the limit is three mails an hour for one address
  const members = [bob, ...strangers].map(({ address }) => address)
  for (const name of names) await phone.couch.db(anns).put(channel(ann, name, { members }))
  const ready = await Promise.all(names.map((name) => inState(couch, anns, name, 'ready')))
  const databases = ready.map(({ database }) => String(database))
  await eventually(async () => {
    const copies = await couch.db(bobs).withPrefix('channel:')
    expect(copies.map(({ database }) => database).sort()).toEqual([...databases].sort())
  })
  for (const device of [phone, tablet]) {
    await eventually(async () => expect(await rolesOf(couch, device)).toHaveLength(1 + names.length))
  }
  await eventually(async () => {
    const invitations = await control.withPrefix('invitation:')
    expect(invitations.map(({ state }) => state)).toEqual(Array(names.length * strangers.length).fill('sent'))
  })
  expect(mails).toHaveLength(names.length * strangers.length)
  expect((await control.withPrefix('channel:')).filter(isRecord)).toHaveLength(names.length)
  expect(await control.withPrefix('account:')).toHaveLength(4)

  for (const one of ready) {
    const fields = one._id === 'photos' ? { state: 'new', members: [] } : { state: 'closing', close: 'delete' }
    await phone.couch.db(anns).put({ ...(await couch.db(anns).get(one._id)), ...fields })
  }
  for (const name of names.slice(1)) await inState(couch, anns, name, 'closed')
  await inState(couch, anns, 'photos', 'ready')
  await eventually(async () => {
    expect(await rolesOf(couch, his)).toEqual([bob.role])
    expect(await rolesOf(couch, phone)).toEqual([ann.role, databases[0]])
    const states = (await couch.db(bobs).withPrefix('channel:')).map(({ state }) => state)
    expect(states.sort()).toEqual(['closed', 'closed', 'removed'])
  })
  const all = await answerOf<string[]>(couch, { path: '_all_dbs' })
  const left = (await channelDatabases(couch, controlDb)).filter((name) => all.includes(name))
  expect(left.filter((name) => name.startsWith('channel-'))).toEqual([databases[0]])
})

thoroughTest('repeating all work with two workers changes nothing and sends no mail', async () => {
  const controlDb = createControlDb()
  const mails: Message[] = []
  const { couch, control } = await startWorker(controlDb, { mails })
  await startWorker(controlDb, { mails })
  const [ann, bob, carl] = [newPerson('ann'), newPerson('bob'), newPerson('carl')]
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  await phone.couch.db(anns).put(channel(ann, 'photos', { members: [bob.address, carl.address] }))
  const { database } = await inState(couch, anns, 'photos', 'ready')
  const [record] = await control.withPrefix('channel:')
  await inState(couch, bobs, record!._id, 'ready')
  await eventually(async () => expect((await control.withPrefix('invitation:'))[0]).toMatchObject({ state: 'sent' }))
  const outcome = async () => ({
    databases: (await channelDatabases(couch, controlDb)).sort(),
    ofChannels: (await answerOf<string[]>(couch, { path: '_all_dbs' })).filter((name) => name === database),
    documents: (await control.withPrefix('')).map(({ _id, state }) => `${_id} ${String(state)}`),
    roles: [await rolesOf(couch, phone), await rolesOf(couch, his)],
    anns: (await couch.db(anns).withPrefix('')).map(({ docstate: _entry, _rev, ...doc }) => doc),
    bobs: (await couch.db(bobs).withPrefix('')).map(({ docstate: _entry, _rev, ...doc }) => doc),
  })
  const atRest = () =>
    eventually(async () => {
      const states = (await control.withPrefix('')).filter(({ type }) =>
        ['account', 'channel_record'].includes(String(type)),
      )
      for (const { _id, state } of states) expect([_id, state]).toEqual([_id, 'ready'])
      await inState(couch, anns, 'photos', 'ready')
    })
  await atRest()
  const before = await outcome()

  const asNew = async (db: string, id: string, state: string) =>
    eventually(async () => {
      const { docstate: _entry, ...doc } = await couch.db(db).get(id)
      await couch.db(db).put({ ...doc, state })
    })
  for (const account of await control.withPrefix('account:')) await asNew(controlDb, account._id, 'changed')
  await asNew(controlDb, record!._id, 'new')
  await asNew(anns, 'photos', 'new')
  await atRest()
  expect(await outcome()).toEqual(before)
  expect(mails).toHaveLength(1)
})
