/** A CouchDB without system databases, as before its setup. */
import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch, needs, startPrivateCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'
import { startSidecar } from './start.ts'
import { linksTo, newDevice, typeCode } from './registration.ts'

test('start creates _users on a server that lacks it, and a device can register', async () => {
  needs('private server') // all other tests need _users of the shared server
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const couch = createTestCouch({ url: server.url })
  await couch.request({ method: 'DELETE', db: '_users' })
  await expect(couch.db('_users').info()).rejects.toMatchObject({ code: 'not_found' })

  const smtp = await startTestSmtp()
  const sidecar = await startSidecar({ COUCHDB_URL: server.url, SMTP_URL: smtp.url })
  await eventually(() => expect(sidecar.output()).toContain('created the database _users'))
  expect(await couch.db('_users').info()).toMatchObject({ db_name: '_users' })

  const device = newDevice()
  await eventually(() => couch.db('control').put(device))
  await eventually(() => expect(linksTo({ smtp, sidecar }, device.owner)).toHaveLength(1))
  const link = linksTo({ smtp, sidecar }, device.owner)[0]!
  const { user = '', password = '' } = await eventually(async () => {
    const { status, body } = await typeCode(link)
    expect({ status, body }).toMatchObject({ status: 200, body: { password: expect.any(String) as string } })
    return body
  })
  const url = Object.assign(new URL(server.url), { username: user, password })
  const session = await createTestCouch({ url: url.href.replace(/\/$/, '') }).request({ path: '_session' })
  expect(session).toMatchObject({ userCtx: { name: user } })
})
