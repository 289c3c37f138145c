import { expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { uniqueName } from '../support/couchdb.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { thoroughTest } from '../support/thorough.ts'
import { page } from './replica.ts'
import { channelOf, newAddress, registerDevice, startDevice, startStage, untilStatus, type Stage } from './stage.ts'

/** No server listens at this address. */
const NOWHERE = 'http://127.0.0.1:9/inbox'

const untilMailed = (stage: Stage, address: string, count = 1) =>
  eventually(() => {
    expect(stage.linksTo(address)).toHaveLength(count)
    return stage.linksTo(address)
  })

test('a device registers, shows its user, and syncs its database', async () => {
  const stage = await startStage()
  const device = await startDevice(stage)
  const { client } = device
  expect(client.status.registration).toEqual({ state: 'none' })
  const ann = newAddress('ann')
  await registerDevice(stage, device, ann, "Ann's phone")
  const { registration } = await untilStatus(client, ({ devices }) => devices.length === 1)
  expect(registration).toMatchObject({ state: 'active', owner: ann, name: "Ann's phone" })
  expect(registration.deviceCode).toMatch(/^\d{6}$/)
  const { user } = registration
  expect(client.status.devices).toEqual([{ user, name: "Ann's phone", state: 'active', isThis: true }])
  expect(client.status.online).toBe(true)
})

test('registration and notes made offline survive a restart, and are sent later', async () => {
  const stage = await startStage()
  const offline = await startDevice(stage, { inbox: NOWHERE, couchdb: NOWHERE })
  const { client, folder } = offline
  const ann = newAddress('ann')
  await client.register({ owner: ann, name: 'phone' })
  const id = await client.createChannel({ name: 'photos' })
  await client.open(id).put({ _id: 'note', text: 'in the tunnel' })
  const { registration } = await untilStatus(client, ({ online }) => !online)
  expect(registration).toMatchObject({ state: 'unsent', deviceCode: expect.any(String) as string })
  expect(channelOf(client, id)).toMatchObject({ name: 'photos', place: 'unready', state: 'new' })
  await client.stop()

  const again = await startDevice(stage, { folder })
  expect(again.client.status.registration.deviceCode).toBe(registration.deviceCode)
  await untilMailed(stage, ann)
  await again.client.stop() // and restart once more before the confirmation

  const third = await startDevice(stage, { folder })
  await untilStatus(third.client, ({ registration }) => registration.state === 'confirming')
  await third.client.confirm(stage.linksTo(ann)[0]!)
  await untilStatus(third.client, () => channelOf(third.client, id).sync.state === 'live')
  const account = await eventually(async () => {
    const [record] = await stage.control.withPrefix('channel:')
    return stage.admin.db(String(record!.database)).get('note')
  })
  expect(account).toMatchObject({ text: 'in the tunnel' })
  expect(await third.client.open(id).get('note')).toMatchObject({ text: 'in the tunnel' })
  expect(stage.linksTo(ann)).toHaveLength(1)
})

test('the device accepts the code of the mail, also after a wrong code, which it reports', async () => {
  const stage = await startStage()
  const { client } = await startDevice(stage)
  const ann = newAddress('ann')
  await client.register({ owner: ann })
  const [link] = await untilMailed(stage, ann)
  await client.confirm('something-else')
  const wrong = await untilStatus(client, ({ registration }) => registration.confirmation?.state === 'error')
  expect(wrong.registration).toMatchObject({ confirmation: { error: { code: 'refused' } } })
  await untilStatus(client, ({ registration }) => registration.state === 'confirming')
  await client.confirm(link!.split('/').at(-1)!)
  const right = await untilStatus(client, ({ control }) => control.state === 'live')
  expect(right.registration).toMatchObject({ state: 'active', confirmation: { state: 'used' } })
})

thoroughTest('another mail is sent only by askAgain', async () => {
  const stage = await startStage()
  const { client } = await startDevice(stage)
  const ann = newAddress('ann')
  await client.register({ owner: ann })
  await untilMailed(stage, ann)
  await untilStatus(client, ({ registration }) => registration.state === 'confirming')
  await client.register({ owner: ann.toUpperCase() })
  await client.askAgain()
  const links = await untilMailed(stage, ann, 2)
  expect(links[0]).not.toBe(links[1])
})

thoroughTest('a mistyped address can be corrected, and its channels stay', async () => {
  const stage = await startStage()
  const device = await startDevice(stage)
  const { client } = device
  const [wrong, ann] = [newAddress('nan'), newAddress('ann')]
  await client.register({ owner: wrong })
  await client.createChannel({ id: 'photos', name: 'photos' })
  await untilMailed(stage, wrong)
  await registerDevice(stage, device, ann)
  await untilStatus(client, () => channelOf(client, 'photos').state === 'ready')
  expect(channelOf(client, 'photos')).toMatchObject({ owner: ann, isOwner: true })
  await expect(client.register({ owner: wrong })).rejects.toMatchObject({ code: 'registered' })
})

test('a refused registration shows the error and is not repeated, and a corrected one is accepted', async () => {
  const stage = await startStage()
  const proxy = await startFaultyProxy(stage.sidecar.url)
  const inbox = `${proxy.url}/inbox`
  const sent = () => proxy.requests.filter(({ method }) => method === 'POST').length
  const { client, folder } = await startDevice(stage, { inbox, hashing: { prf: 'sha256', iterations: 500 } })
  const ann = newAddress('ann')
  await client.register({ owner: ann, name: 'phone' })
  const { registration } = await untilStatus(client, ({ registration }) => registration.state === 'error')
  const error = { code: 'refused', reason: expect.stringContaining('iterations') as string }
  expect(registration).toMatchObject({ owner: ann, error })
  await expect(client.askAgain()).rejects.toMatchObject({ code: 'wrong_state' })
  expect(sent()).toBe(1)
  await client.stop()

  const again = await startDevice(stage, { folder, inbox })
  await again.client.confirm('a-code') // sends nothing, because the inbox has no device
  expect(again.client.status.registration).toMatchObject({ state: 'error', error })
  await again.client.register({ owner: ann, name: 'tablet' })
  await untilMailed(stage, ann)
  const { registration: taken } = await untilStatus(again.client, (one) => one.registration.state === 'confirming')
  expect(taken).toMatchObject({ name: 'tablet' })
  expect(taken).not.toHaveProperty('error')
  expect(sent()).toBe(2)
})

test('an error page of a proxy does not end a registration', async () => {
  const stage = await startStage()
  const proxy = await startFaultyProxy(stage.sidecar.url)
  proxy.plan(({ method }) => (method === 'POST' ? page(403) : undefined))
  const { client } = await startDevice(stage, { inbox: `${proxy.url}/inbox` })
  const ann = newAddress('ann')
  await client.register({ owner: ann })
  await untilStatus(client, ({ registration }) => registration.failure?.code === 'unavailable')
  expect(client.status.registration.state).toBe('unsent')
  proxy.plan(() => undefined)
  await untilMailed(stage, ann)
})

test('the client rejects values that no server accepts', async () => {
  const stage = await startStage()
  const { client } = await startDevice(stage)
  await expect(client.createChannel({ name: 'photos' })).rejects.toMatchObject({ code: 'not_registered' })
  await expect(client.register({ owner: 'ann' })).rejects.toMatchObject({ code: 'bad_argument' })
  for (const name of ['', 'two\nlines', 'half \ud83d', 'x'.repeat(101)])
    await expect(client.register({ owner: newAddress('ann'), name })).rejects.toMatchObject({ code: 'bad_argument' })
  for (const owner of ['a\u0000@example.com', 'half\ud83d@example.com'])
    await expect(client.register({ owner })).rejects.toMatchObject({ code: 'bad_argument' })
  expect(() => client.open('photos')).toThrow(expect.objectContaining({ code: 'unknown' }) as Error)
  const { subtle: _subtle, ...insecure } = { getRandomValues: () => undefined, subtle: undefined }
  vi.stubGlobal('crypto', insecure)
  try {
    await expect(client.register({ owner: `${uniqueName('ann')}@example.com` })).rejects.toMatchObject({
      code: 'insecure_context',
      message: expect.stringContaining('https') as string,
    })
  } finally {
    vi.unstubAllGlobals()
  }
})
