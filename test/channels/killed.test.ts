/**
 * A worker dies: after its n-th write, which CouchDB stores, it cannot reach CouchDB. Another worker takes over, and
 * knows only the documents. The test runs for every n in the life of a channel.
 */
import { expect, test } from 'vitest'
import type { DbName } from '../../sidecar/accounts/account-names.ts'
import { userDatabasesOf } from '../../sidecar/accounts/account-names.ts'
import { databaseNameOf } from '../../sidecar/channels/channel-names.ts'
import { isAmong } from '../../sidecar/core/glob.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import type { Message } from '../../sidecar/docstate/mail.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { cut, cutAfterUpstream, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { sample } from '../support/thorough.ts'
import { addDevice, channel, createControlDb, inState, newPerson, rolesOf, startWorker, type Person } from './rig.ts'
import { answerOf } from '../support/answers.ts'

const TOGETHER = 4

const isWrite = ({ method, path }: SeenRequest): boolean =>
  !['GET', 'HEAD'].includes(method) && !/\/(_all_docs|_local_docs|_bulk_get|_dbs_info|_local\/.*)$/.test(path)

/**
 * Runs the whole life of a channel; the first worker dies after `writes` writes. Resolves with the number of writes.
 */
async function live(writes: number): Promise<number> {
  const controlDb = createControlDb()
  const proxy = await startFaultyProxy()
  const mails: Message[] = []
  let seen = 0
  const dies = new Promise<void>((die) =>
    proxy.plan((request) => {
      if (seen >= writes) return cut
      if (isWrite(request)) seen += 1
      if (seen < writes) return undefined
      die()
      return cutAfterUpstream
    }),
  )
  const first = startWorker(controlDb, { url: proxy.url, mails })
  const second = dies.then(() => startWorker(controlDb, { mails }))
  try {
    await liveWith(controlDb, mails)
    return seen
  } finally {
    await (await first).stop()
    if (seen >= writes) await (await second).stop()
  }
}

async function liveWith(controlDb: string, mails: readonly Message[]): Promise<void> {
  const couch = createTestCouch()
  const [ann, bob, carl] = [newPerson('ann'), newPerson('bob'), newPerson('carl')]
  const existing = listOurs(couch, controlDb, ann, await namesOf(couch))
  await eventually(() => couch.db(controlDb).info())
  const [phone, his] = [await addDevice(couch, controlDb, ann), await addDevice(couch, controlDb, bob)]
  const [anns, bobs] = [await phone.database(), await his.database()]
  const put = (doc: object) => eventually(() => couch.db(anns).put(doc as never))
  await put(channel(ann, 'photos', { members: [bob.address, carl.address] }))
  const ready = await inState(couch, anns, 'photos', 'ready')
  const { _id: id } = await eventually(async () => {
    const copies = await couch.db(bobs).withPrefix('channel:')
    expect(copies).toMatchObject([{ state: 'ready', database: ready.database }])
    return copies[0]!
  })
  await inState(couch, bobs, `subscription:${id}`, 'invite')
  expect(await existing()).toEqual([ready.database, ...[anns, bobs].sort()])
  expect(await rolesOf(couch, his)).toEqual([bob.role, ready.database])

  await put({ ...(await couch.db(anns).find('photos')), state: 'new', members: [] })
  await inState(couch, bobs, id, 'removed')
  await inState(couch, bobs, `subscription:${id}`, 'ended')
  expect(await rolesOf(couch, his)).toEqual([bob.role])

  await put({ ...(await inState(couch, anns, 'photos', 'ready')), state: 'closing', close: 'delete' })
  await inState(couch, anns, 'photos', 'closed')
  await inState(couch, anns, 'subscription:photos', 'ended')
  expect(await existing()).toEqual([anns, bobs].sort())
  expect(await rolesOf(couch, phone)).toEqual([ann.role])
  expect(mails.length).toBeLessThanOrEqual(1)
  await eventually(async () => {
    const made = (await couch.db(controlDb).withPrefix('')).map(({ type, state }) => `${String(type)} ${String(state)}`)
    const accounts = made.filter((one) => one.startsWith('account'))
    expect(accounts).toEqual(['account ready', 'account ready']) // none for Carl, who never registered
    expect(made.filter((one) => one.startsWith('channel_record'))).toEqual(['channel_record closed'])
    expect(made.filter((one) => one.endsWith(' error'))).toEqual([])
  })
}

const namesOf = (couch: Couch) => answerOf<string[]>(couch, { path: '_all_dbs' })

/**
 * Lists the new databases of this control database, with or without a record. User databases are known by their names;
 * channels by the names that follow from a user id, and by their description.
 */
const listOurs = (couch: Couch, controlDb: string, owner: Person, before: readonly string[]) => async () => {
  const names = (await namesOf(couch)).filter((name) => !before.includes(name))
  const users = names.filter((name) => isAmong(name, [userDatabasesOf(controlDb)]))
  const ids = users.map((name) => Buffer.from(name.replace('userdb-', ''), 'hex').toString())
  const possible = ids.flatMap((id) => [1, 2, 3].map((life) => databaseNameOf(id, 'photos', life)))
  const isOurs = async (name: string) =>
    possible.includes(name as DbName) ||
    (await eventually(() => couch.db(name).find('description')))?.owner === owner.address
  const channels = names.filter((name) => name.startsWith('channel-'))
  const ours = await Promise.all(channels.map(async (name) => ((await isOurs(name)) ? [name] : [])))
  return [...ours.flat(), ...users.sort()]
}

test('another worker finishes after a death at any write: one database, no extra access, no mail twice', async () => {
  const writes = await live(Infinity)
  expect(writes).toBeGreaterThan(20)
  const steps = [
    ...sample(
      Array.from({ length: writes }, (_, index) => writes - index),
      60,
    ),
  ]
  const one = async () => {
    for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
      await live(step).catch((thrown: unknown) => {
        steps.length = 0
        throw new Error(`dead after write ${step} of ${writes}`, { cause: thrown })
      })
    }
  }
  await Promise.all(Array.from({ length: TOGETHER }, one))
}, 600_000)
