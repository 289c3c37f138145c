/** The confirm page with wrong codes, used or unknown links, and mail scanners. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { guessesIdOf } from '../../sidecar/devices/device-names.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import {
  askAgain,
  askForMail,
  linksTo,
  newDevice,
  register,
  shareRegistration,
  startRegistration,
  typeCode,
  untilState,
} from './registration.ts'

const ofThisFile = shareRegistration()

test('five wrong codes put the device into error and disable its link, even with the right code', async () => {
  const registration = ofThisFile()
  const device = newDevice()
  const link = await askForMail(registration, device)
  for (const wrong of ['0001', '0002', '0003', '0004'])
    expect(await typeCode(link, wrong)).toMatchObject({ status: 403 })
  await untilState(registration, device._id, 'confirming')
  expect(await typeCode(link, '0005')).toMatchObject({ status: 403 })
  const failed = await untilState(registration, device._id, 'error')
  expect(failed.error).toMatchObject({ code: 'too_many_attempts' })
  expect(await typeCode(link)).toMatchObject({ status: 403 })
  expect((await registration.control.admin.get(device._id)).state).toBe('error')
  expect((await registration.control.documents()).filter(({ device_id }) => device_id === device._id)).toEqual([])
})

test('a request for another mail does not reset the count of wrong codes', async () => {
  const registration = ofThisFile()
  const { control, smtp } = registration
  const device = newDevice()
  const link = await askForMail(registration, device)
  for (const wrong of ['0001', '0002', '0003', '0004']) await typeCode(link, wrong)
  const { _rev } = await control.member.get(device._id)
  await control.member.put({ ...device, _rev }) // without the fields that the sidecar wrote
  await eventually(() => expect(linksTo(registration, device.owner)).toHaveLength(2))
  await untilState(registration, device._id, 'confirming')
  const other = linksTo(registration, device.owner).at(-1)!
  expect(await typeCode(other, '0005')).toMatchObject({ status: 403 })
  await untilState(registration, device._id, 'error')
  expect(await typeCode(other)).toMatchObject({ status: 403 })

  await askAgain(registration, device._id)
  const refused = await untilState(registration, device._id, 'error')
  expect(refused.error).toMatchObject({ code: 'too_many_attempts' })
  await eventually(async () =>
    expect(await control.admin.get(device._id)).toMatchObject({ state: 'error', docstate: { failed_in: 'new' } }),
  )
  expect(smtp.accepted).toHaveLength(2)
})

/** A confirm document as a device writes it. */
const confirmOf = (link: string, device_id: string, device_code: string, _id: string) => {
  const confirm_code = link.split('/').at(-1)
  return { _id, type: 'confirm', state: 'clicked', device_id, device_code, confirm_code }
}

test('guesses by confirm documents are counted, even if they share one id', async () => {
  const registration = ofThisFile()
  const { control } = registration
  const device = newDevice()
  const link = await askForMail(registration, device)
  for (const wrong of ['0001', '0002', '0003', '0004', '0005']) {
    await untilState(registration, device._id, 'confirming')
    await control.member.put(confirmOf(link, device._id, wrong, 'c'))
    const { _rev } = await untilState(registration, 'c', 'error')
    await control.admin.remove('c', _rev)
  }
  expect((await untilState(registration, device._id, 'error')).error).toMatchObject({ code: 'too_many_attempts' })
})

thoroughTest('at most five of many concurrent guesses by confirm documents are compared', async () => {
  const registration = ofThisFile()
  const { control } = registration
  const device = newDevice()
  const link = await askForMail(registration, device)
  const codes = Array.from({ length: 40 }, (_, i) => `${1195 + i}`) // the right code 1234 comes last
  const confirms = codes.map((code) => confirmOf(link, device._id, code, `c-${code}`))
  await control.member.bulk(confirms.map((doc) => JSON.stringify(doc)))
  await eventually(async () => {
    const theirs = (await control.documents()).filter(({ device_id }) => device_id === device._id)
    const states = theirs.map(({ state }) => state)
    expect(states.filter((state) => state === 'error').length).toBeGreaterThanOrEqual(35)
    expect(states).not.toContain('clicked')
  })
  const { guesses } = await control.admin.get(guessesIdOf(device._id))
  expect(guesses).toHaveLength(5)
})

test('four wrong codes do not disable a link', async () => {
  const registration = ofThisFile()
  const device = newDevice()
  const link = await askForMail(registration, device)
  for (const wrong of ['0001', '0002', '0003', '0004']) await typeCode(link, wrong)
  expect(await typeCode(link)).toMatchObject({ status: 200, body: { ok: true } })
})

test('a used link is reported as used, without the password', async () => {
  const registration = ofThisFile()
  const device = newDevice()
  const link = await askForMail(registration, device)
  const first = await typeCode(link)
  expect(first.body).toMatchObject({ ok: true, password: expect.any(String) as string })
  expect(await typeCode(link)).toEqual({ status: 200, body: { ok: true, user: first.body.user } })
  expect(await typeCode(link, '9999')).toMatchObject({ status: 403 })
})

test('two concurrent submits of one form show the same password', async () => {
  const registration = ofThisFile()
  const link = await askForMail(registration, newDevice())
  const [one, other] = await Promise.all([typeCode(link), typeCode(link)])
  expect(one.body).toMatchObject({ ok: true, password: expect.any(String) as string })
  expect(other).toEqual(one)
})

test('unknown devices and codes get the page for a wrong code, without any write', async () => {
  const registration = await startRegistration()
  const { control, sidecar } = registration
  const active = await register(registration)
  const waiting = newDevice()
  const link = await askForMail(registration, waiting)
  const page = async (url: string, deviceCode: string) => {
    const body = new URLSearchParams({ device_code: deviceCode })
    const answer = await fetch(url, { method: 'POST', body, headers: { accept: 'text/html' } })
    return { status: answer.status, page: await answer.text() }
  }
  const wrong = await page(link, '9999')
  expect(wrong.status).toBe(403)

  // The sidecar also writes what follows from the active device.
  await eventually(async () => {
    expect(await control.admin.get(active.id)).toHaveProperty('docstate.handled')
    const states = (await control.documents()).flatMap(({ state }) => state ?? [])
    // Each of the two devices has a quota document for the mailbox and one for the sender.
    const ledgers = Array.from({ length: 4 }, () => 'counting')
    expect(states.sort()).toEqual(['active', 'confirming', ...ledgers, 'ready', 'used'])
  })
  const before = await control.revisions()
  const code = randomBytes(20).toString('base64url')
  for (const path of [
    `nobody/${code}`,
    `nobody/${link.split('/').at(-1)}`,
    `${active.id}/${code}`,
    `${waiting._id}/${code}`,
    `${waiting._id}/x`,
    `_changes/${code}`,
    `_design%2Fdocstate/${code}`,
  ]) {
    expect({ path, ...(await page(`${sidecar.url}/confirm/${path}`, '1234')) }).toEqual({ path, ...wrong })
  }
  expect(await control.revisions()).toEqual(before)
})

const scans = [
  ['GET', 200],
  ['HEAD', 200],
  ['OPTIONS', 405],
  ['PUT', 405],
  ['DELETE', 405],
] as const

test('a mail scanner that follows the link changes nothing, with any method', async () => {
  const registration = await startRegistration()
  const { control } = registration
  const link = await askForMail(registration, newDevice())
  const before = await control.revisions()
  for (const [method, status] of scans) {
    expect({ method, status: (await fetch(link, { method })).status }).toEqual({ method, status })
  }
  expect(await control.revisions()).toEqual(before)
  expect(await typeCode(link)).toMatchObject({ status: 200, body: { ok: true } })
})
