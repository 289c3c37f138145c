/** The limits of the inbox: requests of one address and of all, waiting devices, and stored documents. */
import { expect, test } from 'vitest'
import { createManualClock } from '../support/manual-clock.ts'
import { answerDevice, newConfirm, newDevice, newSecret, startInbox, type InboxRig } from './inbox-rig.ts'

const refused = { type: 'order' }
const from = (rig: InboxRig, address: string, doc: unknown = refused) =>
  rig.send('', { method: 'POST', body: JSON.stringify(doc), headers: { 'x-forwarded-for': address } })

test('one address may send a limited number of documents a minute; then it gets 429 with retry-after', async () => {
  const clock = createManualClock()
  const rig = await startInbox({ perMinute: 30, clock })
  for (let count = 0; count < 30; count++) expect((await rig.post(refused)).status).toBe(403)
  const { status, body, headers } = await rig.post(newDevice(newSecret()))
  expect([status, body.error, headers.get('retry-after')]).toEqual([429, 'too_many_requests', '2'])
  await clock.advance(2000)
  expect((await rig.post(newDevice(newSecret()))).status).toBe(201)
  expect((await rig.post(refused)).status).toBe(429)
  await clock.advance(3_600_000)
  for (let count = 0; count < 30; count++) expect((await rig.post(refused)).status).toBe(403)
  expect((await rig.post(refused)).status).toBe(429)
  expect(rig.counts.turnedAway).toEqual({ rate: 3, full: 0 })
})

test('each document of a bulk counts, and a full bulk passes at once even at a low rate', async () => {
  const clock = createManualClock()
  const rig = await startInbox({ perMinute: 1, clock })
  const bulk = { docs: Array.from({ length: 20 }, () => refused) }
  expect((await rig.post(bulk, '/_bulk_docs')).status).toBe(201)
  expect((await rig.post(refused)).status).toBe(429)
  const { status, headers } = await rig.post(bulk, '/_bulk_docs')
  expect([status, headers.get('retry-after')]).toEqual([429, String(20 * 60)])
})

test('a client that polls every two seconds always gets the status, even over its limit for documents', async () => {
  const clock = createManualClock()
  const rig = await startInbox({ perMinute: 1, clock })
  const secret = newSecret()
  const device = newDevice(secret)
  await rig.post(device)
  while ((await rig.post(refused)).status !== 429);
  for (let count = 0; count < 100; count++) {
    expect((await rig.status(device._id, secret)).status).toBe(200)
    await clock.advance(2000)
  }
  let requested = 0
  while ((await rig.status(device._id, newSecret())).status === 404) requested++
  expect(requested).toBe(60)
})

test('all addresses together have twenty times the limit of one', async () => {
  const clock = createManualClock()
  const rig = await startInbox({ perMinute: 3, proxies: 1, clock })
  const statuses = []
  for (let host = 0; host < 450; host++) statuses.push((await from(rig, `192.0.2.${host % 225}`)).status)
  expect(statuses).toEqual([...Array<number>(400).fill(403), ...Array<number>(50).fill(429)])
  await clock.advance(1000)
  expect((await from(rig, '198.51.100.1')).status).toBe(403)
})

test('the address comes from the proxy’s header, and only the configured proxy is trusted', async () => {
  const rig = await startInbox({ perMinute: 1, proxies: 1, clock: createManualClock() })
  const exhaust = async (address: string) => {
    while ((await from(rig, address)).status !== 429);
  }
  await exhaust('192.0.2.1')
  for (const same of ['10.9.8.7, 192.0.2.1', 'nonsense,192.0.2.1', '192.0.2.1:5678', '::ffff:192.0.2.1']) {
    expect((await from(rig, same)).status, same).toBe(429)
  }
  expect((await from(rig, '192.0.2.1, 192.0.2.2')).status).toBe(403)
  await exhaust('2001:db8:0:1::1')
  expect((await from(rig, '[2001:db8:0:1:ffff::2]:443')).status).toBe(429)
  expect((await from(rig, '2001:db8:0:2::1')).status).toBe(403)
})

test('without a proxy the address header is ignored', async () => {
  const rig = await startInbox({ perMinute: 1, clock: createManualClock() })
  let host = 0
  while ((await from(rig, `192.0.2.${host}`)).status !== 429) host++
  expect(host).toBe(20)
})

test('at the limit of waiting devices the inbox refuses new devices, and accepts existing ones', async () => {
  const clock = createManualClock()
  const rig = await startInbox({ limit: 2, clock })
  const [secret, other] = [newSecret(), newSecret()]
  const [one, two, three] = [newDevice(secret), newDevice(other), newDevice(newSecret())]
  const { body } = await rig.post(one)
  expect((await rig.post(two)).status).toBe(201)
  const full = await rig.post(three)
  expect([full.status, full.body.error, full.headers.get('retry-after')]).toEqual([429, 'too_many_requests', '60'])
  const bulk = await rig.post({ docs: [{ ...three, _rev: '1-a' }], new_edits: false }, '/_bulk_docs')
  expect(bulk.status).toBe(429)
  expect(rig.counts.turnedAway).toEqual({ rate: 0, full: 2 })
  expect(rig.logged.filter((line) => line.includes('too many devices wait'))).toHaveLength(1)

  expect((await rig.post(one)).status).toBe(201)
  await answerDevice(rig, one, { state: 'confirming' })
  expect((await rig.post({ ...one, _rev: body.rev })).status).toBe(201)
  expect((await rig.post(newConfirm(secret, one._id))).status).toBe(201)
  expect((await rig.status(one._id, secret)).status).toBe(200)

  await answerDevice(rig, two, { state: 'active' })
  const both = { docs: [three, { ...newConfirm(secret, one._id), _id: 'another' }] }
  expect((await rig.post(both, '/_bulk_docs')).status).toBe(429)
  expect((await rig.status('another', secret)).status).toBe(200)
  await clock.advance(24 * 3_600_000) // one device may wait again, and the address has a new daily share
  expect((await rig.post(three)).status).toBe(201)
})

test('the inbox stores up to ten times the device limit in documents of any kind', async () => {
  const rig = await startInbox({ limit: 2, proxies: 1, clock: createManualClock() })
  const send = (sent: number) => from(rig, `192.0.2.${sent}`, newConfirm(newSecret(), 'nobody'))
  let taken = 0
  while (taken < 30 && (await send(taken)).status === 201) taken++
  expect(taken).toBe(12) // half of the capacity of twenty, and then the daily shares
  expect((await from(rig, '192.0.2.100', newDevice(newSecret()))).status).toBe(429)
})

test('when half of the capacity is used, one address may use a twentieth of the capacity a day', async () => {
  const clock = createManualClock()
  const rig = await startInbox({ limit: 40, proxies: 1, clock })
  const until429 = async (address: string) => {
    let taken = 0
    while ((await from(rig, address, newDevice(newSecret()))).status === 201) taken++
    return taken
  }
  expect(await until429('192.0.2.1')).toBe(22)
  expect(await until429('192.0.2.2')).toBe(2)
  await clock.advance(12 * 3_600_000)
  expect(await until429('192.0.2.1')).toBe(1)
  await clock.advance(12 * 3_600_000)
  expect(await until429('192.0.2.2')).toBe(2)
  expect(rig.counts.turnedAway).toEqual({ rate: 0, full: 4 })
})
