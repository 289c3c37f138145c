/** Registration by a client without credentials: like an app, it uses only the inbox. */
import { createHash, pbkdf2Sync, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { uniqueName } from '../support/couchdb.ts'
import { linksTo, logIn, startRegistration, typeCode, type Registration } from './registration.ts'

const PASSWORD = 'chosen by the device'

function hashed() {
  const salt = randomBytes(16).toString('hex')
  const derived_key = pbkdf2Sync(PASSWORD, salt, 1000, 20, 'sha1').toString('hex')
  return { password_scheme: 'pbkdf2', salt, derived_key, iterations: 1000 }
}

/** An app on a phone. It chooses its secret and its ids itself. */
function createApp({ sidecar }: Registration) {
  const secret = randomBytes(16).toString('hex')
  const inbox = `${sidecar.url}/inbox`
  return {
    async send(doc: object, from = '192.0.2.1') {
      const secret_sha256 = createHash('sha256').update(secret).digest('hex')
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': from }
      const answer = await fetch(inbox, { method: 'POST', headers, body: JSON.stringify({ ...doc, secret_sha256 }) })
      return { status: answer.status, body: (await answer.json()) as Record<string, string> }
    },
    async status(id: string) {
      const answer = await fetch(`${inbox}/${id}`, { headers: { authorization: `Bearer ${secret}` } })
      return (await answer.json()) as Record<string, unknown>
    },
    untilStatus(id: string, status: object) {
      return eventually(async () => {
        const now = await this.status(id)
        expect(now).toMatchObject(status)
        return now
      })
    },
  }
}

const newDevice = (fields: object = {}) => ({
  _id: 'phone',
  type: 'device',
  state: 'new',
  owner: `${uniqueName('owner')}@example.com`,
  device_code: '1234',
  ...fields,
})

test('a device registers, reads its status, and confirms with the code typed into the app', async () => {
  const registration = await startRegistration()
  const { control, smtp, sidecar } = registration
  const app = createApp(registration)
  const device = newDevice({ credentials: hashed() })
  expect((await app.send(device)).status).toBe(201)
  await app.untilStatus('phone', { type: 'device', state: 'confirming' })

  const confirm = { type: 'confirm', state: 'clicked', device_id: 'phone', device_code: '1234' }
  await app.send({ ...confirm, _id: 'mistyped', confirm_code: 'something-else' })
  await app.untilStatus('mistyped', { type: 'confirm', state: 'error', error: { code: 'refused' } })
  const [link] = linksTo(registration, device.owner)
  expect((await app.send({ ...confirm, _id: 'typed', confirm_code: link!.split('/').at(-1) })).status).toBe(201)
  const { user } = await app.untilStatus('phone', { state: 'active', user: expect.any(String) as string })
  await app.untilStatus('typed', { state: 'used' })
  expect(await logIn(user as string, PASSWORD)).toMatchObject({ status: 200 })
  const { syncpoint } = await app.untilStatus('phone', { database: expect.stringMatching(/^userdb-/) as string })
  await usesChannels(String(user), String(syncpoint), device.owner)

  expect((await app.send(device)).status).toBe(201)
  expect(smtp.accepted).toHaveLength(1)
  expect(JSON.stringify(await control.documents())).not.toContain(PASSWORD)
  expect(sidecar.output()).not.toContain(PASSWORD)
})

/** Creates a channel and writes a note to it, as an app does with its user and syncpoint. */
async function usesChannels(user: string, syncpoint: string, owner: string) {
  const authorization = `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}`
  const headers = { authorization, 'content-type': 'application/json' }
  const ask = async (url: string, body?: object) => {
    const method = body ? 'PUT' : 'GET'
    const answer = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const channel = { type: 'channel', state: 'new', name: 'photos', owner, members: [] }
  expect((await ask(`${syncpoint}/photos`, channel)).status).toBe(201)
  const ready = await eventually(async () => {
    const { body } = await ask(`${syncpoint}/photos`)
    expect(body).toMatchObject({ state: 'ready' })
    return body
  })
  await eventually(async () => {
    expect((await ask(`${String(ready.syncpoint)}/note`, { text: 'hello' })).status).toBe(201)
  })
}

test('the confirm page confirms a device that registered through the inbox', async () => {
  const registration = await startRegistration()
  const app = createApp(registration)
  const device = newDevice()
  await app.send(device)
  await app.untilStatus('phone', { state: 'confirming' })
  const { status, body } = await typeCode(linksTo(registration, device.owner)[0]!)
  expect(status).toBe(200)
  await app.untilStatus('phone', { state: 'active', user: body.user })
})

test('a device that is sent many times causes one mail, and a request for another mail causes a second', async () => {
  const registration = await startRegistration()
  const { control, smtp } = registration
  const app = createApp(registration)
  const device = newDevice()
  const answers = await Promise.all(Array.from({ length: 20 }, () => app.send(device)))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  await app.untilStatus('phone', { state: 'confirming' })
  expect((await app.send(device)).status).toBe(201)
  expect((await control.documents()).filter(({ type }) => type === 'device')).toHaveLength(1)
  expect(smtp.accepted).toHaveLength(1)

  const { _rev } = await app.status('phone')
  expect((await app.send({ ...device, _rev })).status).toBe(201)
  await eventually(() => expect(smtp.accepted).toHaveLength(2))
})

test('a rate of zero documents a minute disables the inbox', async () => {
  const registration = await startRegistration({ SIDECAR_INBOX_RATE: '0' })
  expect((await createApp(registration).send(newDevice())).status).toBe(404)
  expect((await fetch(`${registration.sidecar.url}/inbox`)).status).toBe(404)
})

test('repeated registrations by a stranger do not keep the owner of an address from registering', async () => {
  const registration = await startRegistration({ SIDECAR_PROXIES: '1', SIDECAR_MAILS_PER_OWNER: '2' })
  const [name, domain] = newDevice().owner.split('@')
  const stranger = createApp(registration)
  const ids = ['one', 'two', 'three']
  for (const [at, _id] of ids.entries()) {
    await stranger.send(newDevice({ _id, owner: `${name}+${at}@${domain}` }))
    const refused = { state: 'error', error: { code: 'too_many_mails' } }
    await stranger.untilStatus(_id, at < 2 ? { state: 'confirming' } : refused)
  }
  const owner = createApp(registration)
  await owner.send(newDevice({ owner: `${name}@${domain}` }), '198.51.100.1')
  await owner.untilStatus('phone', { state: 'confirming' })
})
