/** Devices that create their own password, and send the sidecar only its hash. */
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { eventually } from '../support/eventually.ts'
import { createTestCouch, ignoreMissing, needs } from '../support/couchdb.ts'
import {
  askAgain,
  askForMail,
  linksTo,
  logIn,
  newDevice,
  shareRegistration,
  typeCode,
  untilState,
} from './registration.ts'

const ofThisFile = shareRegistration()

const PASSWORD = 'chosen by the device'

/** A password hash as CouchDB stores it. */
function hashed(digest: 'sha1' | 'sha256', iterations: number) {
  const salt = randomBytes(16).toString('hex')
  const bytes = digest === 'sha1' ? 20 : 32
  const derived_key = pbkdf2Sync(PASSWORD, salt, iterations, bytes, digest).toString('hex')
  const prf = digest === 'sha1' ? {} : { pbkdf2_prf: 'sha256' }
  return { password_scheme: 'pbkdf2', ...prf, salt, derived_key, iterations }
}

test('a device that sends a CouchDB hash of its password can log in with the password', async () => {
  needs('pbkdf2 other than sha1')
  const registration = ofThisFile()
  const device = newDevice({ credentials: hashed('sha256', 600_000) })
  const { status, body } = await typeCode(await askForMail(registration, device))
  expect({ status, body }).toEqual({ status: 200, body: { ok: true, user: expect.any(String) as string } })
  const active = await untilState(registration, device._id, 'active')
  expect(active).not.toHaveProperty('credentials')
  expect(await logIn(body.user!, PASSWORD)).toEqual({ status: 200, roles: [active.owner_role] })
})

/** Replication is enough: the document of an offline device arrives when the device is online again. */
const confirm = (link: string, device_id: string, fields = {}) => {
  const confirm_code = link.split('/').at(-1)
  return {
    _id: `c-${device_id}`,
    type: 'confirm',
    state: 'clicked',
    device_id,
    device_code: '1234',
    confirm_code,
    ...fields,
  }
}

test('a device confirms with its own document, without the page', async () => {
  const registration = ofThisFile()
  const { control } = registration
  const device = newDevice({ credentials: hashed('sha1', 1000) })
  await control.member.put(confirm(await askForMail(registration, device), device._id))
  const active = await untilState(registration, device._id, 'active')
  expect(await logIn(active.user as string, PASSWORD)).toEqual({ status: 200, roles: [active.owner_role] })
  const used = await untilState(registration, `c-${device._id}`, 'used')
  expect(used).not.toHaveProperty('confirm_code')
})

test('the confirming document may contain the hash', async () => {
  const registration = ofThisFile()
  const { control } = registration
  const device = newDevice()
  const link = await askForMail(registration, device)
  await control.member.put(confirm(link, device._id, { credentials: hashed('sha1', 1000) }))
  const active = await untilState(registration, device._id, 'active')
  expect(await logIn(active.user as string, PASSWORD)).toMatchObject({ status: 200 })
  expect(await untilState(registration, `c-${device._id}`, 'used')).not.toHaveProperty('credentials')
})

test('a device confirmed by document without credentials is in error, and can register again', async () => {
  const registration = ofThisFile()
  const { control } = registration
  const device = newDevice({ credentials: { generate: true } })
  await control.member.put(confirm(await askForMail(registration, device), device._id))
  const failed = await untilState(registration, device._id, 'error')
  expect(failed.error).toMatchObject({ code: 'no_credentials' })
  await eventually(async () => {
    const { error: _error, docstate: _docstate, ...rest } = await control.admin.get(device._id)
    await control.member.put({ ...rest, state: 'new' }) // a conflict while the sidecar writes its expiry
  })
  await untilState(registration, device._id, 'confirming')
  const { body } = await typeCode(linksTo(registration, device.owner)[1]!)
  expect(body).toMatchObject({ ok: true, password: expect.any(String) as string })
})

test('a device whose confirmation failed can register again and gets a new, working password', async () => {
  needs('pbkdf2 other than sha1')
  const registration = ofThisFile()
  const { control } = registration
  const device = newDevice()
  const link = await askForMail(registration, device)
  const users = createTestCouch().db('_users')
  const name = userNameOf(device._id)
  const theirs = { _id: `org.couchdb.user:${name}`, type: 'user', name, roles: [], device_id: 'of another database' }
  const _rev = await users.put(theirs)
  const clicked = typeCode(link)
  await untilState(registration, device._id, 'confirmed')
  await eventually(async () => {
    const confirmed = await control.admin.get(device._id) // each failed attempt adds a revision
    await control.admin.put({ ...confirmed, state: 'error', docstate: undefined }) // like after ten failed attempts
  })
  expect(await clicked).toMatchObject({ status: 403 })
  // An attempt that ended after the device failed may have removed the user.
  await users.remove(theirs._id, _rev).catch(ignoreMissing)

  await askAgain(registration, device._id)
  await untilState(registration, device._id, 'confirming')
  expect(await typeCode(link)).toMatchObject({ status: 403 })
  const { body } = await typeCode(linksTo(registration, device.owner)[1]!)
  expect(body).toMatchObject({ ok: true, password: expect.any(String) as string })
  expect(await logIn(body.user!, body.password!)).toMatchObject({ status: 200 })
  expect(JSON.stringify(await untilState(registration, device._id, 'active'))).not.toContain('derived_key')
})
