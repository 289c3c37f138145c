/** Strangers who guess passwords at the sidecar lock no account out of CouchDB, including its own. */
import { expect, test } from 'vitest'
import { createUser } from '../ddocs/users.ts'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { basic, createServerAdmin, loginStatus } from '../support/server-admin.ts'
import { newDevice, startRegistration, untilState } from './registration.ts'

const ENDPOINTS = ['/metrics', '/_workers', '/_indexes', '/_db_updates', '/_events/mail:sent']

test('any number of wrong passwords for the sidecar’s own name stops nothing', async () => {
  needs('node endpoints')
  const admin = await createServerAdmin()
  const registration = await startRegistration({ COUCHDB_URL: admin.url })
  const { control, sidecar } = registration
  const ask = async (path: string, authorization: string) =>
    (await fetch(`${sidecar.url}${path}`, { headers: { authorization } })).status
  for (const path of ENDPOINTS) expect(await ask(path, basic(admin.name, 'old password'))).toBe(401)
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) => ask(ENDPOINTS[i % ENDPOINTS.length]!, basic(admin.name, `wrong ${i}`))),
  )
  expect(new Set(answers)).toEqual(new Set([401, 429]))
  expect(await loginStatus(admin.authorization)).toBe(200)
  expect((await fetch(`${sidecar.url}/_up`)).status).toBe(200)
  const device = newDevice()
  await control.member.put(device)
  await untilState(registration, device._id, 'confirming')
})

test('wrong passwords for another name do not lock that name out of CouchDB', async () => {
  needs('node endpoints')
  const { sidecar } = await startRegistration()
  const { name, couch } = await createUser()
  for (let i = 0; i < 12; i++) {
    const headers = { authorization: basic(name, `wrong ${i}`) }
    await fetch(`${sidecar.url}${ENDPOINTS[i % ENDPOINTS.length]}`, { headers })
  }
  await couch.request({ db: '_session' })
})

test('_up reports that CouchDB refuses the sidecar', async () => {
  needs('node endpoints')
  const admin = await createServerAdmin()
  const { sidecar } = await startRegistration({ COUCHDB_URL: admin.url })
  await admin.remove()
  await eventually(async () => {
    const response = await fetch(`${sidecar.url}/_up`)
    expect([response.status, await response.text()]).toEqual([
      503,
      expect.stringContaining('CouchDB refuses the sidecar') as string,
    ])
  })
  expect(sidecar.log).toContainEqual(
    expect.objectContaining({ level: 50, msg: expect.stringContaining('CouchDB refuses the sidecar') as string }),
  )
})
