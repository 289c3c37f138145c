/** The sidecar revokes a member's access even where it cannot update the member's copy. */
import { expect, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { pass, startFaultyProxy } from '../support/faulty-proxy.ts'
import { thoroughTest } from '../support/thorough.ts'
import { inState, rolesOf, startWithMember } from './rig.ts'

async function start() {
  const all = await startWithMember()
  const { couch, phone, his, bob, anns, ready, record } = all
  expect(await rolesOf(couch, his)).toEqual([bob.role, record.role])
  const removeBob = () => phone.couch.db(anns).put({ ...ready, state: 'new', members: [] })
  return { ...all, removeBob }
}

thoroughTest(
  "a member loses access although the member's own database holds too much to read in one request",
  async () => {
    const { couch, his, bob, bobs, record, removeBob } = await start()
    const text = 'x'.repeat(7_900_000)
    for (let i = 0; i < 9; i++) {
      const hash = String(i).repeat(32)
      const revision = { _rev: `9-${hash}`, _revisions: { start: 9, ids: [hash] } }
      await his.couch.db(bobs).merge([{ ...revision, _id: `subscription:${record._id}`, type: 'note', text }])
    }
    await removeBob()
    await eventually(async () => expect(await rolesOf(couch, his)).toEqual([bob.role]))
    await inState(couch, bobs, record._id, 'removed')
  },
)

test('a member loses access although a cluster has written the user document twice', async () => {
  const { his, bob, removeBob } = await start()
  const users = createTestCouch().db('_users')
  const id = `org.couchdb.user:${his.user}`
  const user = (await users.find(id))!
  const [generation, hash] = [Number(user._rev.split('-')[0]), '0'.repeat(32)]
  await users.merge([
    { ...user, _rev: `${generation}-${hash}`, _revisions: { start: generation, ids: [hash] }, note: 'beside it' },
  ])
  expect(await users.leaves(id)).toHaveLength(2)
  await removeBob()
  await eventually(async () => {
    const leaves = (await users.leaves(id)).filter(({ _deleted }) => !_deleted)
    expect(leaves.map(({ roles }) => roles)).toEqual([[bob.role]])
  })
})

test('a member who is removed during a resync loses access before the copy is updated', async () => {
  const proxy = await startFaultyProxy()
  const { couch, his, bob, bobs, record, controlDb } = await startWithMember({ url: proxy.url })
  const control = couch.db(controlDb)
  await inState(couch, controlDb, record._id, 'ready')
  const account = (await control.withPrefix('account:')).find(({ address }) => address === bob.address)!
  await inState(couch, controlDb, account._id, 'ready')
  proxy.next(
    async (exchange) => {
      // This write comes after the worker has read the roles, and before it reads the copies.
      await control.put({ ...(await control.get(record._id)), members: [] })
      await pass(exchange)
    },
    ({ path }) => [`/${bobs}/_bulk_get`, `/${bobs}/_all_docs`].includes(path),
  )
  await eventually(async () => control.put({ ...(await control.get(account._id)), state: 'changed' }))
  await inState(couch, bobs, record._id, 'removed')
  expect(await rolesOf(couch, his)).toEqual([bob.role])
})

test.each([
  { device_id: 'device:another' },
  { device_id: undefined },
  { owner: 'eve@example.com', type: 'user', state: 'revoked' },
])('a member loses access after writing %j into the own document in `_users`', async (fields) => {
  const { couch, his, bob, removeBob } = await start()
  const users = createTestCouch().db('_users')
  const id = `org.couchdb.user:${his.user}`
  await eventually(async () => users.put({ ...(await users.get(id)), ...fields }))
  await removeBob()
  await eventually(async () => expect(await rolesOf(couch, his)).toEqual([bob.role]))
})
