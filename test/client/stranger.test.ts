/** Somebody who knows where everything is, and has a device of his own: what he can find out of others. */
import { expect, test } from 'vitest'
import { createTestCouch, needs, uniqueName } from '../support/couchdb.ts'
import {
  keptBy,
  openApp,
  registerApp,
  startBrowserStage,
  statusOf,
  untilStatus,
  write,
  type BrowserDevice,
} from './browser-stage.ts'

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: object
}

/** Asks from the page, with the credentials of its device or with none; resolves with status and text. */
const ask = ({ page }: BrowserDevice, asked: Asked, authorization?: string) =>
  page.evaluate(
    async ({ method, path, body, authorization }) => {
      const headers = {
        ...(body && { 'Content-Type': 'application/json' }),
        ...(authorization !== undefined && { Authorization: authorization }),
      }
      const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch(path, { ...init, credentials: 'omit' })
      return { status: answer.status, text: await answer.text() }
    },
    { ...asked, authorization },
  )

const readings = (db: string): Asked[] => [
  ...['', '/_all_docs', '/_changes', '/_security', '/_design_docs', '/_local_docs', '/description', '/note'].map(
    (path) => ({ method: 'GET', path: `/couchdb/${db}${path}` }),
  ),
  { method: 'HEAD', path: `/couchdb/${db}` },
  { method: 'POST', path: `/couchdb/${db}/_find`, body: { selector: {} } },
  { method: 'POST', path: `/couchdb/${db}/_bulk_get`, body: { docs: [{ id: 'note' }] } },
  { method: 'PUT', path: `/couchdb/${db}/mine`, body: {} },
]

test('a stranger reads nothing: no document, no name, and not whether there is one', async () => {
  needs('browser')
  needs('guarded find')
  needs('refusals by status')
  const stage = await startBrowserStage()
  const { control } = stage.registration
  const [ann, eve] = [`${uniqueName('ann')}@example.com`, `${uniqueName('eve')}@example.com`]
  const phone = await openApp(stage)
  await registerApp(stage, phone, ann, 'phone')
  const id = await phone.page.evaluate(() => client.createChannel({ name: 'secret plans' }))
  await write(phone, id, 'note')
  await untilStatus(phone, ({ channels }) => channels[0]?.sync.state === 'live')

  const stranger = await openApp(stage)
  await registerApp(stage, stranger, eve, 'eve')
  await untilStatus(stranger, ({ devices }) => devices.length === 1)
  expect((await statusOf(stranger)).channels).toEqual([])
  const [own, others] = [await keptBy(stranger), await keptBy(phone)]
  const evesOwn = `Basic ${btoa(`${own.user}:${own.password}`)}`
  expect((await ask(stranger, { method: 'GET', path: `/couchdb/${own.database}` }, evesOwn)).status).toBe(200)
  const [record] = await control.admin.withPrefix('channel:')
  const channel = String(record!.database)
  const databases = [channel, control.name, others.database]

  for (const authorization of [undefined, evesOwn]) {
    for (const db of databases) {
      for (const asked of readings(db)) {
        const { status, text } = await ask(stranger, asked, authorization)
        expect([401, 403], `${asked.method} ${asked.path}`).toContain(status)
        for (const secret of ['secret plans', 'note', ann, id]) expect(text).not.toContain(secret)
      }
    }
    // What there is not, where its name could be guessed: by an address, or by the name of a channel.
    for (const guess of [
      'userdb-616e6e',
      `userdb-${Buffer.from(ann).toString('hex')}`,
      'channel-secret',
      'secret-plans',
    ]) {
      expect((await ask(stranger, { method: 'GET', path: `/couchdb/${guess}` }, authorization)).status).not.toBe(200)
    }
    const all = await ask(stranger, { method: 'GET', path: '/couchdb/_all_dbs' }, authorization)
    expect([401, 403]).toContain(all.status)
    for (const path of ['_users/_all_docs', `_users/org.couchdb.user:${others.user}`, '_dbs_info', '_active_tasks']) {
      const { status, text } = await ask(stranger, { method: 'GET', path: `/couchdb/${path}` }, authorization)
      expect([401, 403, 404, 405], path).toContain(status)
      expect(text).not.toContain(ann)
    }
  }
  expect(await createTestCouch().db(channel).get('note')).toMatchObject({ _id: 'note' })
})

test('the inbox tells a stranger the same of what is there and of what is not', async () => {
  needs('browser')
  const stage = await startBrowserStage()
  const { control } = stage.registration
  const phone = await openApp(stage)
  await registerApp(stage, phone, `${uniqueName('ann')}@example.com`, 'phone')
  const { id } = await keptBy(phone)
  const stranger = await openApp(stage)
  const [device] = (await control.admin.withPrefix('inbox-')).filter(({ type }) => type === 'device')
  const answers = []
  for (const path of [id, device!._id, 'nobody', `device-${'0'.repeat(32)}`]) {
    for (const authorization of [undefined, 'Bearer wrong', 'Basic YTpi']) {
      answers.push(await ask(stranger, { method: 'GET', path: `/inbox/${path}` }, authorization))
    }
  }
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  expect(answers[0]!.status).toBe(404)
  for (const path of ['_all_docs', '_changes', '_find', '_bulk_get', '_design/docstate', '_security']) {
    const { status, text } = await ask(stranger, { method: 'GET', path: `/inbox/${path}` })
    expect(status, path).toBe(403)
    expect(text).not.toContain(device!._id)
  }
})
