/** Requests for another mail, and expired links. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { uniqueName } from '../support/couchdb.ts'
import { thoroughTest } from '../support/thorough.ts'
import { startSidecar } from './start.ts'
import { askAgain, askForMail, linksTo, newDevice, startRegistration, typeCode, untilState } from './registration.ts'

test.each([0, 1])('a device that requests another mail gets it, and link %i of the two works', async (which) => {
  const registration = await startRegistration()
  const device = newDevice()
  await askForMail(registration, device)
  await askAgain(registration, device._id)
  await eventually(() => expect(linksTo(registration, device.owner)).toHaveLength(2))
  await untilState(registration, device._id, 'confirming')
  const links = linksTo(registration, device.owner)
  expect(links[0]).not.toBe(links[1])
  expect(await typeCode(links[which]!)).toMatchObject({ status: 200, body: { ok: true } })
  await untilState(registration, device._id, 'active')
})

test('the hourly mail quota of an owner holds for every spelling of the address and every device', async () => {
  const registration = await startRegistration({ SIDECAR_MAILS_PER_OWNER: '2' })
  const { control, smtp } = registration
  const device = newDevice({ owner: 'Busy@Example.com' })
  await control.member.put(device)
  await untilState(registration, device._id, 'confirming')
  const another = newDevice({ owner: 'busy@example.COM' })
  await control.member.put(another)
  await untilState(registration, another._id, 'confirming')
  const third = newDevice({ owner: 'busy@example.com' })
  await control.member.put(third)
  const refused = await untilState(registration, third._id, 'error')
  expect(refused.error).toMatchObject({ code: 'too_many_mails', reason: expect.stringContaining('2') as string })
  const other = newDevice()
  await askForMail(registration, other)
  expect(smtp.accepted.map(({ envelope }) => envelope.to[0])).toEqual([
    'busy@example.com',
    'busy@example.com',
    other.owner,
  ])
})

test('a mail beyond the quota is an error, and links sent before stay valid', async () => {
  const registration = await startRegistration({ SIDECAR_MAILS_PER_OWNER: '2' })
  const device = newDevice()
  const link = await askForMail(registration, device)
  await askAgain(registration, device._id)
  await eventually(() => expect(linksTo(registration, device.owner)).toHaveLength(2))
  await untilState(registration, device._id, 'confirming')
  await askAgain(registration, device._id)
  expect((await untilState(registration, device._id, 'error')).error).toMatchObject({ code: 'too_many_mails' })
  expect(await typeCode(link, '9999')).toMatchObject({ status: 403 })
  expect(await typeCode(link)).toMatchObject({ status: 200, body: { password: expect.any(String) as string } })
  expect(await untilState(registration, device._id, 'active')).not.toHaveProperty('error')
})

thoroughTest('both spellings of an international domain are one owner, who receives each mail', async () => {
  const registration = await startRegistration()
  const { control, smtp } = registration
  const name = uniqueName('owner')
  const owners = []
  for (const owner of [`${name}@xn--mnchen-3ya.de`, `${name}@MÜNCHEN.de`]) {
    const { _id } = newDevice({ owner })
    await control.member.put(newDevice({ _id, owner }))
    await untilState(registration, _id, 'confirming')
    const { body } = await typeCode(linksTo(registration, `${name}@münchen.de`).at(-1)!)
    expect(body).toMatchObject({ ok: true })
    owners.push(await untilState(registration, _id, 'active'))
  }
  expect(owners.map(({ owner }) => owner)).toEqual([`${name}@münchen.de`, `${name}@münchen.de`])
  expect(owners[0]!.owner_role).toBe(owners[1]!.owner_role)
  expect(smtp.commands).toEqual(owners.map(() => `RCPT TO:<${name}@xn--mnchen-3ya.de>`))
  for (const { text } of smtp.accepted) expect(text).toContain(`${name}@münchen.de`)
  expect((await control.documents()).filter(({ type }) => type === 'mail_ledger')).toHaveLength(1)
})

test('a link expires together with its device, and the device can request another mail', async () => {
  const registration = await startRegistration({ SIDECAR_CONFIRM_EXPIRY: '2s' })
  const { control, settings } = registration
  const device = newDevice()
  await control.member.put(device)
  const expired = await untilState(registration, device._id, 'expired')
  const [link] = linksTo(registration, device.owner)
  expect(await typeCode(link!)).toMatchObject({ status: 410, body: { error: 'expired' } })
  expect(await control.admin.get(device._id)).toEqual(expired)

  await registration.sidecar.stop()
  const patient = { ...registration, sidecar: await startSidecar({ ...settings, SIDECAR_CONFIRM_EXPIRY: '1h' }) }
  await askAgain(patient, device._id)
  await untilState(patient, device._id, 'confirming')
  const links = linksTo(patient, device.owner)
  expect(links).toHaveLength(2)
  // Two workers read CouchDB's clock to the second: the second may have kept the code for its last moment.
  expect([403, 410]).toContain((await typeCode(links[0]!)).status)
  expect(await typeCode(links[1]!)).toMatchObject({ status: 200, body: { ok: true } })
})
