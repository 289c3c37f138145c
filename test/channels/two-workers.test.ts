import { expect, test } from 'vitest'
import { isRecord } from '../../sidecar/channels/documents.ts'
import { channelDatabases } from '../support/channel-databases.ts'
import { eventually } from '../support/eventually.ts'
import type { Message } from '../../sidecar/docstate/mail.ts'
import { addDevice, channel, createControlDb, inState, newPerson, rolesOf, startWorker } from './rig.ts'

/** Each of them takes every document: what other workers do when they do not know of each other. */
test('two workers that do everything twice leave one of each, and mail once', async () => {
  const controlDb = createControlDb()
  const mails: Message[] = []
  const { couch, control } = await startWorker(controlDb, { mails })
  await startWorker(controlDb, { mails })
  const [ann, bob] = [newPerson('ann'), newPerson('bob')]
  const strangers = [newPerson('carl'), newPerson('dora')]
  const phones = await Promise.all([ann, ann, bob].map((person) => addDevice(couch, controlDb, person)))
  const [phone, tablet, his] = phones as [(typeof phones)[0], (typeof phones)[0], (typeof phones)[0]]
  const [anns, bobs] = [await phone.database(), await his.database()]

  const names = ['photos', 'diary', 'plans'] // three mails an hour go to one address
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
  const all = await couch.request<string[]>({ path: '_all_dbs' })
  const left = (await channelDatabases(couch, controlDb)).filter((name) => all.includes(name))
  expect(left.filter((name) => name.startsWith('channel-'))).toEqual([databases[0]])
})
