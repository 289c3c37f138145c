import { expect, test } from 'vitest'
import type { StoredRecord } from '../../sidecar/channels/channel-documents.ts'
import { isCalledOff } from '../../sidecar/channels/ending.ts'
import { makeChannel } from '../../sidecar/channels/records/channel-record-new.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { makeDatabase } from '../../sidecar/deploy/make-database.ts'
import { createCompiler } from '../../sidecar/deploy/compiler.ts'
import type { Context } from '../../sidecar/docstate/types.ts'
import { createTestCouch, freshDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { cut, startFaultyProxy } from '../support/faulty-proxy.ts'
import { sample, thoroughTest } from '../support/thorough.ts'
import { channel, inState, rolesOf, startWithMember, startWorker, type WorkerOptions } from './rig.ts'
import { answerOf } from '../support/answers.ts'

async function start(options: WorkerOptions = {}) {
  const all = await startWithMember(options)
  const { phone, anns, record } = all
  /** Drops undefined fields, as JSON does. */
  const put = (doc: object) => phone.couch.db(anns).put(JSON.parse(JSON.stringify(doc)) as Doc)
  return { ...all, id: record._id, put }
}

const exists = async (name: unknown) =>
  (await answerOf<string[]>(createTestCouch(), { path: '_all_dbs' })).includes(String(name))

test('an archived channel keeps its database, and no user can read it', async () => {
  const all = await start()
  const { couch, phone, his, anns, bobs, ready, id, put, ann, bob } = all
  await couch.db(String(ready.database)).put({ _id: 'note' })
  await put({ ...ready, state: 'closing', close: 'archive' })
  await inState(couch, anns, 'photos', 'closed')
  await inState(couch, anns, 'subscription:photos', 'ended')
  await inState(couch, bobs, id, 'closed')
  await inState(couch, bobs, `subscription:${id}`, 'ended')
  expect(await rolesOf(couch, phone)).toEqual([ann.role])
  expect(await rolesOf(couch, his)).toEqual([bob.role])
  await expect(phone.couch.db(String(ready.database)).info()).rejects.toThrow()
  expect(await couch.db(String(ready.database)).get('note')).toMatchObject({ _id: 'note' })
})

test('a deleted channel loses its database, and the channel made again gets a new one', async () => {
  const all = await start()
  const { couch, phone, anns, bobs, ready, id, put } = all
  await put({ ...ready, state: 'closing', close: 'delete' })
  const closed = await inState(couch, anns, 'photos', 'closed')
  await inState(couch, bobs, id, 'closed')
  expect(await exists(ready.database)).toBe(false)

  await put({ ...closed, state: 'new' })
  const again = await inState(phone.couch, anns, 'photos', 'ready')
  expect(again.database).not.toBe(ready.database)
  expect(await exists(again.database)).toBe(true)
  expect(await exists(ready.database)).toBe(false)
  await inState(couch, anns, 'subscription:photos', 'active')
  await inState(couch, bobs, `subscription:${id}`, 'invite')
  const description = await eventually(() => phone.couch.db(String(again.database)).get('description'))
  expect(description).toMatchObject({ name: 'photos' })
})

thoroughTest(
  'a channel made again appears on its owner’s devices, also without the fields that the sidecar wrote',
  async () => {
    const { couch, ann, anns, bob, ready, put } = await start()
    await put({ ...ready, state: 'closing', close: 'delete' })
    const { _rev } = await inState(couch, anns, 'photos', 'closed')
    await inState(couch, anns, 'subscription:photos', 'ended')

    await put({ ...channel(ann, 'photos'), _rev })
    await eventually(async () => put({ ...(await couch.db(anns).get('photos')), state: 'new', members: [bob.address] }))
    const again = await inState(couch, anns, 'photos', 'ready')
    expect(again.database).not.toBe(ready.database)
    await inState(couch, anns, 'subscription:photos', 'active')
  },
)

thoroughTest('a channel made again appears on its owner’s devices after the first worker dies', async () => {
  const proxy = await startFaultyProxy()
  const { couch, controlDb, ann, anns, ready, record, put } = await start({ url: proxy.url })
  await put({ ...ready, state: 'closing', close: 'delete' })
  const { _rev } = await inState(couch, anns, 'photos', 'closed')
  await inState(couch, anns, 'subscription:photos', 'ended')

  proxy.plan(({ method, path }) => (method !== 'GET' && path === `/${anns}/_bulk_docs` ? cut : undefined))
  await put({ ...channel(ann, 'photos'), _rev })
  await inState(couch, controlDb, record._id, 'ready')
  proxy.plan(() => cut)
  await inState(couch, anns, 'photos', 'new')
  await startWorker(controlDb)
  await inState(couch, anns, 'photos', 'ready')
  await inState(couch, anns, 'subscription:photos', 'active')
})

test('closing a refused or unprocessed channel takes effect at once, and closes no other channel', async () => {
  const all = await start()
  const { couch, control, ann, anns, put, ready } = all
  await put(channel(ann, 'again', { name: 'photos' }))
  await put({ ...channel(ann, 'nameless'), name: '' })
  for (const id of ['again', 'nameless']) {
    const { error: _error, docstate: _docstate, ...refused } = await inState(couch, anns, id, 'error')
    await put({ ...refused, state: 'closing', close: 'delete' })
    expect(await inState(couch, anns, id, 'closed')).not.toHaveProperty('error')
  }
  await put({ ...channel(ann, 'offline'), state: 'closing', close: 'archive' })
  await inState(couch, anns, 'offline', 'closed')
  expect(await control.withPrefix('channel:')).toHaveLength(1)
  expect(await inState(couch, anns, 'photos', 'ready')).toMatchObject({ database: ready.database })
  expect(await exists(ready.database)).toBe(true)

  await put({ ...(await couch.db(anns).get('offline')), state: 'new' })
  await inState(couch, anns, 'offline', 'ready')
})

thoroughTest(
  'a closing that does not name a database closes the first database of the channel, but no later one',
  async () => {
    const all = await start()
    const { couch, ann, anns, put } = all
    /** Closes like a device that has not read the name of the database yet. */
    const close = async ({ database: _database, owner_role: _role, ...doc }: Doc) =>
      couch.db(anns).put({ ...doc, state: 'closing', close: 'delete' })
    await close(await couch.db(anns).get('photos'))
    await inState(couch, anns, 'photos', 'closed')
    await inState(couch, anns, 'subscription:photos', 'ended')
    expect(await exists(all.ready.database)).toBe(false)

    const { _rev } = await couch.db(anns).get('photos')
    await put({ ...channel(ann, 'photos'), _rev })
    const again = await inState(couch, anns, 'photos', 'ready')
    await close(again)
    expect((await inState(couch, anns, 'photos', 'error')).error).toMatchObject({ code: 'no_channel' })
    expect(await exists(again.database)).toBe(true)
  },
)

thoroughTest('a channel that is closed before its database is created gets no database', async () => {
  const all = await start()
  const { couch, control, controlDb, ann, anns, put, record } = all
  await put({ ...channel(ann, 'called off'), state: 'closing', close: 'delete' })
  await inState(couch, anns, 'called off', 'closed')
  // A worker writes this record if it read the document just before.
  const { _rev, docstate: _docstate, ...fields } = record
  const database = `${String(record.database)}-other`
  const late = { ...fields, _id: `${record._id}-other`, state: 'new', database, document: 'called off' }
  await control.put(late)
  await inState(couch, controlDb, late._id, 'closed')
  expect(await exists(database)).toBe(false)
})

thoroughTest('another channel can take the name of a closed channel', async () => {
  const proxy = await startFaultyProxy()
  const { couch, controlDb, ann, anns, ready, record, put } = await start({ url: proxy.url })
  proxy.plan(({ path }) => (path.startsWith('/_users') ? cut : undefined)) // the worker cannot update users
  await put({ ...ready, state: 'closing', close: 'delete' })
  await inState(couch, controlDb, record._id, 'closed')
  await put(channel(ann, 'again', { name: 'photos' }))
  await eventually(async () =>
    expect((await couch.db(anns).get('again')).docstate).toMatchObject({
      failure: { reason: expect.stringMatching(/photos is being closed/) as string },
    }),
  )
  proxy.plan(() => undefined)
  await inState(couch, anns, 'photos', 'closed')
  await inState(couch, anns, 'again', 'ready')
})

test('a closing without a database ends the first life of a channel, but no later one', () => {
  const request = { _id: 'photos', type: 'channel', state: 'closing' }
  expect([1, 2].map((life) => isCalledOff(request, life))).toEqual([true, false])
})

test('a late worker that fails leaves no database behind', async () => {
  const [control, couch] = [await freshDb('control'), createTestCouch()]
  const name = uniqueName('channel-late')
  const fields = { type: 'channel_record', database: name, role: name, name: 'late', owner: 'ann@example.com' }
  const closed = { _id: 'channel:late', ...fields, state: 'closed', close: 'delete' }
  await control.put(closed)
  const ctx = { signal: new AbortController().signal, find: (id: string) => control.find(id) } as unknown as Context
  const late = { ...closed, state: 'new', close: undefined } as unknown as StoredRecord
  const making = makeChannel({
    ...{ couch, compiler: createCompiler(), shards: 1, templates: [{ folder: '/nonexistent' }] },
  })(late, ctx)
  await expect(making).rejects.toThrow('/nonexistent')
  expect(await exists(name)).toBe(false)
})

test.each(sample(['delete', 'archive'], 2))(
  'a database that a late worker recreates for an ended channel (%s) is closed after that worker dies',
  async (close) => {
    const { couch, control, anns, ready, put } = await start()
    await put({ ...ready, state: 'closing', close })
    await inState(couch, anns, 'photos', 'closed')
    const [name, wanted] = [String(ready.database), { role: String(ready.database), templates: [] }]
    await makeDatabase(
      { couch, compiler: createCompiler(), shards: 1 },
      { name, ...wanted },
      { signal: new AbortController().signal },
    )
    const end = await control.get(`ended:${name}`)
    expect(end).toMatchObject({ state: 'waiting', docstate: { timeout_at: expect.any(String) as string } })
    const docstate = { state: 'waiting', timeout_at: new Date().toISOString() }
    await control.put({ ...end, docstate })
    await eventually(async () => expect(await control.find(end._id)).toBeUndefined())
    if (close === 'delete') expect(await exists(name)).toBe(false)
    else expect(await couch.db(name).security()).toMatchObject({ members: { roles: ['_admin'] } })
  },
)

test('an unknown value of close, a deleted document or a resync does not close a channel', async () => {
  const all = await start()
  const { couch, control, ann, anns, ready, record, put, controlDb } = all
  for (const close of [undefined, 'yes', 'DELETE']) {
    await eventually(async () => put({ ...(await couch.db(anns).get('photos')), state: 'closing', close }))
    const refused = await inState(couch, anns, 'photos', 'error')
    expect(refused.error).toMatchObject({ code: 'bad_close' })
    const { close: _close, error: _error, docstate: _docstate, ...mended } = refused
    await put({ ...mended, state: 'new' })
    await inState(couch, anns, 'photos', 'ready')
  }
  const now = (await couch.db(anns).find('photos'))!
  await expect(put({ ...now, _deleted: true })).rejects.toThrow()
  await couch.db(anns).remove('photos', now._rev) // by an admin
  const account = (await control.withPrefix('account:')).find(({ address }) => address === ann.address)!
  for (const { _id } of [account, record]) {
    await eventually(async () => control.put({ ...(await control.get(_id)), state: 'changed' }))
    await inState(couch, controlDb, _id, 'ready')
  }
  expect(await exists(ready.database)).toBe(true)
})
