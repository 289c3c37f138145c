/** A CouchDB that nobody has set up: it has no system databases. */
import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch, needs, startPrivateCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'
import { startSidecar } from './start.ts'
import { linksTo, newDevice, typeCode } from './registration.ts'

test('a server without _users gets it with the start, and a device registers there', async () => {
  needs('private server') // the one of this run needs its _users for all the other tests
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const couch = createTestCouch({ url: server.url })
  await couch.request({ method: 'DELETE', db: '_users' })
  await expect(couch.db('_users').info()).rejects.toMatchObject({ code: 'not_found' })

  const smtp = await startTestSmtp()
  const sidecar = await startSidecar({ COUCHDB_URL: server.url, SMTP_URL: smtp.url })
  await eventually(() => expect(sidecar.output()).toContain('made the database _users'))
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
