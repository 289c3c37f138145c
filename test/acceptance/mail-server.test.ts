/** The mail server is not always there, and does not always say what it did. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { linksTo, newDevice, startRegistration, typeCode, untilState } from './registration.ts'

test('a mail server that is down at first gets exactly one mail when it is up', async () => {
  const registration = await startRegistration()
  const { control, smtp, sidecar } = registration
  await smtp.down()
  const device = newDevice()
  await control.member.put(device)
  await eventually(() => expect(sidecar.output()).toContain('mail_unreachable'))
  const waiting = await control.admin.get(device._id)
  expect(waiting).toMatchObject({ state: 'new', docstate: { failure: { code: 'mail_unreachable' } } })
  await smtp.up()
  await untilState(registration, device._id, 'confirming', 40_000)
  expect(smtp.accepted.map(({ envelope }) => envelope.to)).toEqual([[device.owner]])
  const [link] = linksTo(registration, device.owner)
  expect(await typeCode(link!)).toMatchObject({ status: 200, body: { ok: true } })
  expect(smtp.accepted).toHaveLength(1)
})

test.each([550, 553])('a recipient refused with %i is an error with a reason, and not tried again', async (code) => {
  const registration = await startRegistration()
  const { control, smtp } = registration
  smtp.behave({ kind: 'refuse-recipient', code })
  const device = newDevice()
  await control.member.put(device)
  const failed = await untilState(registration, device._id, 'error')
  const reason = expect.stringContaining(`refused with ${code}`) as string
  expect(failed.error).toEqual({ code: 'mail_refused', reason, at: expect.any(String) as string })
  expect(smtp.tries).toBe(1)
})

test('a mail server that asks to come back later gets the mail then', async () => {
  const registration = await startRegistration()
  const { control, smtp } = registration
  smtp.behave({ kind: 'refuse-message', code: 451 })
  const device = newDevice()
  await control.member.put(device)
  await eventually(async () =>
    expect((await control.admin.get(device._id)).docstate).toMatchObject({ failure: { code: 'mail_deferred' } }),
  )
  smtp.behave({ kind: 'accept' })
  await untilState(registration, device._id, 'confirming', 40_000)
  expect(smtp.accepted).toHaveLength(1)
})

test('a mail that was accepted, but not seen to be, is sent again with its Message-ID; both links work', async () => {
  const registration = await startRegistration()
  const { control, smtp } = registration
  smtp.behave({ kind: 'cut-after-message' })
  const device = newDevice()
  await control.member.put(device)
  await eventually(() => expect(smtp.accepted).toHaveLength(1))
  smtp.behave({ kind: 'accept' })
  await untilState(registration, device._id, 'confirming', 40_000)
  const ids = smtp.accepted.map(({ messageId }) => messageId)
  expect(ids).toEqual([ids[0], ids[0]])
  expect(ids[0]).toMatch(/^<.+@.+>$/)
  const links = linksTo(registration, device.owner)
  expect(await typeCode(links[0]!)).toMatchObject({ status: 200, body: { ok: true } })
  expect(await typeCode(links[1]!)).toMatchObject({ status: 200, body: { ok: true } })
})

test('a link that is typed in while another mail is still on its way is confirmed as soon as that one is', async () => {
  const registration = await startRegistration()
  const { control, smtp } = registration
  smtp.behave({ kind: 'cut-after-message' })
  const device = newDevice()
  await control.member.put(device)
  await eventually(() => expect(smtp.accepted).toHaveLength(1))
  const [link] = linksTo(registration, device.owner)
  const early = typeCode(link!)
  smtp.behave({ kind: 'accept' })
  expect([200, 202]).toContain((await early).status)
  await eventually(async () => expect((await typeCode(link!)).body).toMatchObject({ ok: true }), { within: 40_000 })
})
