/** How often the client refreshes its state, and how it recovers from a failed refresh. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { createLooks } from '../../client/src/looks.ts'
import { eventually } from '../support/eventually.ts'
import { PouchDB, type TestDb } from './stage.ts'

/** A client without a server; its control database counts the reads of the stored registration. */
async function startCounting() {
  const folder = await mkdtemp(join(tmpdir(), 'device-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const Real = PouchDB.defaults({ prefix: `${folder}/` })
  let reads = 0
  function Counting(name: string): TestDb {
    const db = new Real(name)
    const get = db.get.bind(db)
    db.get = (id) => {
      reads += 1
      return get(id)
    }
    return db
  }
  const client = await createClient({
    ...{ PouchDB: Counting as unknown as typeof Real, inbox: 'http://localhost/inbox', name: 'app' },
  })
  onTestFinished(() => client.stop())
  let changes = 0
  client.on('change', () => (changes += 1))
  return { client, control: new Real('app-control'), reads: () => reads, changes: () => changes }
}

/** Refreshes that end when the test says so. */
function startLooks() {
  const begun: (() => void)[] = []
  const looks = createLooks(
    () => new Promise((resolve) => begun.push(resolve)),
    () => {},
  )
  onTestFinished(() => {
    for (const done of begun) done()
    return looks.end()
  })
  return { looks, begun }
}

test('a refresh that has not started is shared by all callers; a call after its start gets another one', async () => {
  const { looks, begun } = startLooks()
  const first = looks.now()
  await eventually(() => expect(begun).toHaveLength(1))
  const others = [looks.now(), looks.now()]
  looks.soon()
  begun[0]!()
  await first
  await eventually(() => expect(begun).toHaveLength(2))
  begun[1]!()
  await Promise.all(others)
  await looks.end()
  expect(begun).toHaveLength(2)
})

test('calls that do not wait share one refresh', async () => {
  const { looks, begun } = startLooks()
  for (let times = 0; times < 3; times++) looks.soon()
  await eventually(() => expect(begun).toHaveLength(1))
  begun[0]!()
  await looks.end()
  expect(begun).toHaveLength(1)
})

test('a failed refresh is reported, and retried automatically', async () => {
  const failed: unknown[] = []
  let times = 0
  const looks = createLooks(
    async () => {
      times += 1
      if (times <= 2) throw new Error(`failure ${times}`)
    },
    (thrown) => failed.push(String(thrown)),
  )
  onTestFinished(() => looks.end())
  await expect(looks.now()).rejects.toThrow('failure 1')
  await eventually(() => expect(times).toBe(3))
  expect(failed).toEqual(['Error: failure 1', 'Error: failure 2'])
  await looks.now()
})

const channels = (count: number) =>
  Array.from({ length: count }, (_, number) => number).flatMap((number) => [
    { _id: `c${number}`, type: 'channel', state: 'ready', name: `channel ${number}`, database: `channel-${number}` },
    { _id: `subscription:c${number}`, type: 'subscription', state: 'active', channel_id: `c${number}` },
  ])

test('channels that arrive together share one refresh', async () => {
  const { client, control, reads, changes } = await startCounting()
  const before = reads()
  await control.bulkDocs(channels(250))
  await eventually(() => {
    expect(client.status.channels.filter(({ place, local }) => place === 'synced' && local)).toHaveLength(250)
  })
  // One refresh for each document would cause 500.
  for (const count of [reads() - before, changes()]) expect(count).toBeLessThan(125)
})

test('a channel that is closed and made again at once gets another local database', async () => {
  const { client, control } = await startCounting()
  const owner = 'ann@example.com'
  await client.register({ owner })
  const doc = { _id: 'photos', type: 'channel', name: 'photos', owner, database: 'channel-a' }
  const subscription = { _id: 'subscription:photos', type: 'subscription', channel_id: 'photos', state: 'active' }
  await control.bulkDocs([{ ...doc, state: 'ready' }, subscription])
  const first = await eventually(() => client.open('photos'))
  const { _rev } = await control.get('photos')
  await control.put({ ...doc, _rev, state: 'closed' })
  await client.createChannel({ id: 'photos', name: 'photos' })
  expect(client.open('photos')).not.toBe(first)
})
