/** Failures during sync, and the number of connections in normal operation. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { pass, refuse, type FaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import { amount, sample, thoroughTest } from '../support/thorough.ts'
import { channelOf, newAddress, registerDevice, startDevice, startStage, untilStatus, type Device } from './stage.ts'

const stateOf = ({ client }: Device, id: string) => channelOf(client, id).sync.state

async function startWithChannel() {
  const stage = await startStage()
  const phone = await startDevice(stage)
  await registerDevice(stage, phone, newAddress('ann'))
  const id = await phone.client.createChannel({ name: 'photos' })
  await untilStatus(phone.client, () => stateOf(phone, id) === 'live')
  const [record] = await stage.control.withPrefix('channel:')
  return { stage, phone, id, database: stage.admin.db(String(record!.database)) }
}

const refusals: readonly (readonly [status: number, state: string])[] = [
  [401, 'denied'],
  [403, 'denied'],
  [404, 'failing'],
  [500, 'failing'],
]

test.each(sample(refusals, refusals.length))(
  'a channel that the server refuses with %i is %s, and recovers by itself',
  async (status, state) => {
    const { stage, phone, id, database } = await startWithChannel()
    stage.couch.plan(({ path }) => (path.includes(database.name) ? refuse(status) : undefined))
    stage.couch.dropConnections()
    await phone.client.open(id).put({ _id: 'note' })
    await untilStatus(phone.client, () => stateOf(phone, id) === state)
    expect(channelOf(phone.client, id)).toMatchObject({ place: 'synced', sync: { failure: {} } })
    expect(phone.client.status.registration.state).toBe('active')
    stage.couch.plan(() => undefined)
    await untilStatus(phone.client, () => stateOf(phone, id) === 'live')
    expect(await database.get('note')).toMatchObject({ _id: 'note' })
    expect(channelOf(phone.client, id).sync).not.toHaveProperty('failure')
  },
)

test('sync waits while the network is down, and then both sides get all documents', async () => {
  const { stage, phone, id, database } = await startWithChannel()
  await stage.couch.down()
  await phone.client.open(id).put({ _id: 'from here' })
  await untilStatus(phone.client, ({ online }) => !online && stateOf(phone, id) === 'offline')
  await database.put({ _id: 'from there' })
  await stage.couch.up()
  await eventually(async () => expect(await database.get('from here')).toMatchObject({ _id: 'from here' }))
  await eventually(async () =>
    expect(await phone.client.open(id).get('from there')).toMatchObject({ _id: 'from there' }),
  )
  await untilStatus(phone.client, ({ online }) => online && stateOf(phone, id) === 'live')
})

/** The open feeds of the server with their path and age, seen by a proxy that passes everything on. */
function watchFeeds(proxy: FaultyProxy): () => readonly string[] {
  const open = new Map<SeenRequest, number>()
  proxy.plan((request) => {
    if (request.query.get('feed') !== 'longpoll') return undefined
    return async (exchange) => {
      open.set(request, performance.now())
      try {
        await pass(exchange)
      } finally {
        open.delete(request)
      }
    }
  })
  const secondsSince = (ms: number) => Math.round((performance.now() - ms) / 1000)
  return () => [...open].map(([{ path }, begunAt]) => `${path} for ${secondsSince(begunAt)} s`)
}

/** More channels than can have a feed at the same time: three, beside the control database. */
const CHANNELS = amount(5, 7)

thoroughTest('many channels sync all their notes with four open feeds', async () => {
  const stage = await startStage()
  const feeds = watchFeeds(stage.couch)
  const phone = await startDevice(stage, { roundMs: 1000 })
  const { client } = phone
  const ann = newAddress('ann')
  await registerDevice(stage, phone, ann)
  const ids = []
  for (let number = 1; number <= CHANNELS; number++) {
    const id = await client.createChannel({ id: `c${number}`, name: `channel ${number}` })
    await client.open(id).put({ _id: 'note' })
    ids.push(id)
  }
  const areAllSynced = () => client.status.channels.every(({ sync }) => sync.syncedAt !== undefined)
  await untilStatus(client, areAllSynced)
  const inState = (state: string) => client.status.channels.filter(({ sync }) => sync.state === state).length
  await untilStatus(client, () => inState('live') === 3 && inState('resting') + inState('waiting') === CHANNELS - 3)
  await eventually(() => expect(feeds()).toHaveLength(4)) // an abandoned feed can stay open for 25 s

  const quiet = ids.find((id) => stateOf(phone, id) === 'resting')!
  const records = await stage.control.withPrefix('channel:')
  for (const { database } of records) {
    expect(await stage.admin.db(String(database)).get('note')).toMatchObject({ _id: 'note' })
  }
  const record = records.find(({ document }) => document === quiet)
  await stage.admin.db(String(record!.database)).put({ _id: 'from there' })
  await untilStatus(client, () => channelOf(client, quiet).sync.read > 0)
  await eventually(async () => expect(await client.open(quiet).get('from there')).toMatchObject({ _id: 'from there' }))
  await client.open(quiet).put({ _id: 'opened' })
  await untilStatus(client, () => stateOf(phone, quiet) === 'live' && inState('live') === 3)
  await eventually(async () =>
    expect(await stage.admin.db(String(record!.database)).get('opened')).toMatchObject({ _id: 'opened' }),
  )
  await eventually(() => expect(feeds()).toHaveLength(4)) // an abandoned feed can stay open for 25 s
})
