/** Browsers as devices, the sidecar as a process, and mails by SMTP: an end-to-end test. */
import { expect, test } from 'vitest'
import { needs, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import {
  asBasic,
  ask,
  begin,
  keptBy,
  notesOn,
  openApp,
  registerApp,
  shareBrowserStage,
  statusOf,
  untilStatus,
  write,
  type BrowserDevice,
  type BrowserStage,
} from './browser-stage.ts'

const openStage = shareBrowserStage()

const addressOf = (name: string) => `${uniqueName(name)}@example.com`

async function startDevice(stage: BrowserStage, owner: string, name: string): Promise<BrowserDevice> {
  const device = await openApp(stage)
  await registerApp(stage, device, owner, name)
  return device
}

const untilNotes = (device: BrowserDevice, channel: string, ids: readonly string[], within = 40_000) =>
  eventually(async () => expect((await notesOn(device, channel)).sort()).toEqual([...ids].sort()), { within })

const channelIn = async (device: BrowserDevice, name: string) => {
  const status = await untilStatus(device, ({ channels }) => channels.some((one) => one.name === name && one.local))
  return status.channels.find((one) => one.name === name)!
}

thoroughTest('two browsers are two devices that sync with each other, also after both were offline', async () => {
  needs('browser')
  const stage = await openStage()
  const ann = addressOf('ann')
  const phone = await startDevice(stage, ann, 'phone')
  const tablet = await startDevice(stage, ann, 'tablet')
  const id = await phone.page.evaluate(() => client.createChannel({ name: 'photos' }))
  await write(phone, id, 'first')
  await channelIn(tablet, 'photos')
  await untilNotes(tablet, id, ['first'])

  for (const { context } of [phone, tablet]) await context.setOffline(true)
  await write(phone, id, 'from the phone')
  await write(tablet, id, 'from the tablet')
  await untilStatus(phone, ({ online }) => !online)
  await untilNotes(phone, id, ['first', 'from the phone'])
  await untilNotes(tablet, id, ['first', 'from the tablet'])
  for (const { context } of [phone, tablet]) await context.setOffline(false)
  for (const device of [phone, tablet]) await untilNotes(device, id, ['first', 'from the phone', 'from the tablet'])
  for (const { complaints } of [phone, tablet]) expect(complaints).toEqual([])
})

thoroughTest('a member accepts an invitation, reads and writes, and can read nothing after the removal', async () => {
  needs('browser')
  const stage = await openStage()
  const [ann, bob] = [addressOf('ann'), addressOf('bob')]
  const [phone, his] = [await startDevice(stage, ann, 'phone'), await startDevice(stage, bob, 'his')]
  const id = await phone.page.evaluate((bob) => client.createChannel({ name: 'photos', members: [bob] }), bob)
  await write(phone, id, 'first')
  const requested = await untilStatus(his, ({ channels }) => channels[0]?.place === 'invited')
  const theirs = requested.channels[0]!.id
  await his.page.evaluate((theirs) => client.accept(theirs), theirs)
  await untilNotes(his, theirs, ['first'])
  await write(his, theirs, 'his')
  await untilNotes(phone, id, ['first', 'his'])

  const records = await stage.registration.control.admin.withPrefix('channel:')
  const record = records.find(({ owner }) => owner === ann)
  const database = String(record!.database)
  const kept = await keptBy(his)
  const answerTo = (path: string) => ask(his, { method: 'GET', path: `/couchdb/${path}` }, asBasic(kept))
  expect((await answerTo(`${database}/first`)).status).toBe(200)

  await untilStatus(phone, ({ channels }) => channels[0]!.state === 'ready')
  await phone.page.evaluate((id) => client.setMembers(id, []), id)
  await untilStatus(his, ({ channels }) => channels[0]!.place === 'removed')
  await write(phone, id, 'second')
  await untilStatus(phone, ({ channels }) => channels[0]!.sync.written >= 2)
  for (const path of ['', '/_all_docs', '/_changes', '/first', '/second', '/description']) {
    // A node's cache of users can admit the member for a moment. pouchdb-server answers 401.
    const refused = await eventually(async () => {
      const answer = await answerTo(`${database}${path}`)
      expect([401, 403], path).toContain(answer.status)
      return answer
    })
    for (const note of ['first', 'second']) expect(refused.text).not.toContain(note)
  }
  expect((await answerTo(kept.database)).status, 'a removed member can still read the own database').toBe(200)
  await write(his, theirs, 'too late')
  const refusals = await his.page.evaluate(async (theirs) => {
    const { registration } = client.status
    return [registration.state, client.status.channels.find(({ id }) => id === theirs)!.sync.state]
  }, theirs)
  expect(refusals).toEqual(['active', 'off'])
  await untilNotes(his, theirs, ['first', 'his', 'too late'])
  await untilNotes(phone, id, ['first', 'his', 'second'])
})

thoroughTest('a registration and a sync continue after a reload of the page at any step', async () => {
  needs('browser')
  const stage = await openStage()
  const ann = addressOf('ann')
  const phone = await openApp(stage)
  const { page, context } = phone
  const reload = async () => {
    await page.reload()
    await begin(page)
  }
  await context.setOffline(true)
  await page.evaluate((owner) => client.register({ owner, name: 'phone' }), ann)
  const id = await page.evaluate(() => client.createChannel({ name: 'photos' }))
  await write(phone, id, 'offline')
  const code = (await statusOf(phone)).registration.deviceCode
  await context.setOffline(false)
  await reload()
  expect((await statusOf(phone)).registration.deviceCode).toBe(code)
  await reload()
  await registerApp(stage, phone, ann, 'phone')
  await reload()
  await reload()
  const tablet = await startDevice(stage, ann, 'tablet')
  await channelIn(tablet, 'photos')
  await untilNotes(tablet, id, ['offline'])
  await write(phone, id, 'online')
  await reload()
  await untilNotes(tablet, id, ['offline', 'online'])
  expect(stage.registration.smtp.accepted.filter(({ envelope }) => envelope.to.includes(ann))).toHaveLength(2)
})

test('two tabs are one device, and one tab syncs; when it is closed, the other tab syncs', async () => {
  needs('browser')
  const stage = await openStage()
  const ann = addressOf('ann')
  const first = await startDevice(stage, ann, 'phone')
  const second = await openApp(stage, { context: first.context })
  const id = await second.page.evaluate(() => client.createChannel({ name: 'photos' }))
  await write(second, id, 'from the second tab')
  await untilStatus(second, ({ channels }) => channels[0]?.sync.state === 'live')
  await untilNotes(first, id, ['from the second tab'])
  expect((await statusOf(second)).registration).toEqual((await statusOf(first)).registration)
  const tablet = await startDevice(stage, ann, 'tablet')
  await channelIn(tablet, 'photos')
  await untilNotes(tablet, id, ['from the second tab'])
  await first.page.close()
  await write(second, id, 'after the first was closed')
  await untilNotes(tablet, id, ['after the first was closed', 'from the second tab'])
})

thoroughTest('a feed that died in a sleep restarts when another tab of the device becomes visible', async () => {
  needs('browser')
  const stage = await openStage()
  const ann = addressOf('ann')
  const first = await startDevice(stage, ann, 'phone')
  const second = await openApp(stage, { context: first.context })
  const tablet = await startDevice(stage, ann, 'tablet')
  const id = await tablet.page.evaluate(() => client.createChannel({ name: 'photos' }))
  await untilStatus(first, ({ channels }) => channels[0]?.sync.state === 'live')
  let [isDead, dead] = [true, 0]
  const isFeed = (url: URL) => url.pathname.includes('/channel-') && url.searchParams.get('feed') === 'longpoll'
  await first.page.route(isFeed, async (route) => {
    if (isDead)
      dead += 1 // no answer
    else await route.continue()
  })
  await write(tablet, id, 'heard')
  await untilNotes(first, id, ['heard'])
  await eventually(() => expect(dead).toBe(1))
  await write(tablet, id, 'not heard')

  await first.page.evaluate(() => {
    const now = Date.now.bind(Date)
    Date.now = () => now() + 30_000 // only the clock runs while a laptop sleeps
  })
  isDead = false
  await second.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  await untilNotes(second, id, ['heard', 'not heard'], 15_000)
})

thoroughTest('destroy in one tab resets all tabs: they show nothing, send nothing, and register again', async () => {
  needs('browser')
  const stage = await openStage()
  const ann = addressOf('ann')
  const first = await startDevice(stage, ann, 'phone')
  const [second, third] = [
    await openApp(stage, { context: first.context }),
    await openApp(stage, { context: first.context }),
  ]
  const id = await first.page.evaluate(() => client.createChannel({ name: 'photos' }))
  await untilStatus(third, ({ channels }) => channels[0]?.local !== undefined)
  await write(third, id, 'note')
  await untilStatus(second, ({ channels }) => channels[0]?.sync.state === 'live')

  for (const destroying of [second, first]) {
    await destroying.page.evaluate(() => client.destroy())
    for (const tab of [first, second, third]) {
      const { registration, channels, devices } = await untilStatus(tab, (one) => one.registration.state === 'none')
      expect([registration, channels, devices]).toEqual([{ state: 'none' }, [], []])
      expect(await tab.page.evaluate(() => indexedDB.databases())).toEqual([])
    }
    for (const { page } of [first, second, third]) {
      await page.reload()
      await begin(page)
    }
    await registerApp(stage, first, ann, 'phone')
    await untilStatus(third, ({ channels }) => channels[0]?.sync.state === 'live')
    await untilNotes(third, id, ['note'])
  }
  for (const { complaints } of [first, second, third]) expect(complaints).toEqual([])
})

thoroughTest('every tab gets the event for a document that the server refuses', async () => {
  needs('browser')
  needs('refusals by status')
  const stage = await openStage()
  const first = await startDevice(stage, addressOf('ann'), 'phone')
  const second = await openApp(stage, { context: first.context })
  for (const { page } of [first, second]) {
    await page.evaluate(() => {
      const refused: string[] = []
      client.on('refused', ({ id }) => refused.push(id))
      Object.assign(globalThis, { refused })
    })
  }
  const id = await first.page.evaluate(() => client.createChannel({ name: 'photos' }))
  await write(first, id, 'description')
  for (const { page } of [first, second]) {
    await page.waitForFunction(() => (globalThis as unknown as { refused: string[] }).refused.includes('description'))
  }
})

thoroughTest('browsers copy attachments byte for byte, with any content type', async () => {
  needs('browser')
  const stage = await openStage()
  const ann = addressOf('ann')
  const phone = await startDevice(stage, ann, 'phone')
  const tablet = await startDevice(stage, ann, 'tablet')
  const id = await phone.page.evaluate(() => client.createChannel({ name: 'photos' }))
  const bytes = [0xff, 0xfe, 0x7b, 0x0d, 0x0a, 0x80, 0]
  await phone.page.evaluate(
    async ({ id, bytes }) => {
      const file = (type: string) => ({ content_type: type, data: new Blob([new Uint8Array(bytes)], { type }) })
      const _attachments = { 'map.json': file('application/json'), photo: file('image/jpeg') }
      await client.open(id).put({ _id: 'note', _attachments })
    },
    { id, bytes },
  )
  await channelIn(tablet, 'photos')
  await untilNotes(tablet, id, ['note'])
  for (const name of ['map.json', 'photo']) {
    const copied = await tablet.page.evaluate(
      async ({ id, name }) => {
        const blob = (await client.open(id).getAttachment('note', name)) as unknown as Blob
        return [...new Uint8Array(await blob.arrayBuffer())]
      },
      { id, name },
    )
    expect(copied, name).toEqual(bytes)
  }
})

thoroughTest('twelve channels sync over the six connections of a browser', async () => {
  needs('browser')
  const stage = await openStage()
  const ann = addressOf('ann')
  const phone = await startDevice(stage, ann, 'phone')
  const ids = await phone.page.evaluate(async () => {
    const made = []
    for (let number = 1; number <= 12; number++) {
      const id = await client.createChannel({ name: `channel ${number}` })
      await client.open(id).put({ _id: 'from the phone' })
      made.push(id)
    }
    return made
  })
  const tablet = await startDevice(stage, ann, 'tablet')
  await untilStatus(tablet, ({ channels }) => channels.length === 12 && channels.every(({ local }) => local))
  for (const id of ids) await untilNotes(tablet, id, ['from the phone'])
  for (const id of ids) await write(tablet, id, 'from the tablet')
  for (const id of ids) await untilNotes(phone, id, ['from the phone', 'from the tablet'])
  const states = (await statusOf(phone)).channels.map(({ sync }) => sync.state)
  expect(states.filter((state) => state === 'live').length).toBeLessThanOrEqual(3)
})
