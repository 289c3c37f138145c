/** The mail server is unreachable at times, and its answers may be lost. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { askAgain, askForMail, linksTo, newDevice, shareRegistration, typeCode, untilState } from './registration.ts'

const ofThisFile = shareRegistration()

test('a mail server that is down at first receives exactly one mail after it starts', async () => {
  const registration = ofThisFile()
  const { control, smtp, sidecar } = registration
  await smtp.down()
  const device = newDevice()
  await control.member.put(device)
  await eventually(() => expect(sidecar.output()).toContain('mail_unreachable'))
  const waiting = await control.admin.get(device._id)
  expect(waiting).toMatchObject({ state: 'new', docstate: { failure: { code: 'mail_unreachable' } } })
  await smtp.up()
  await untilState(registration, device._id, 'confirming')
  expect(smtp.accepted.map(({ envelope }) => envelope.to)).toEqual([[device.owner]])
  const [link] = linksTo(registration, device.owner)
  expect(await typeCode(link!)).toMatchObject({ status: 200, body: { ok: true } })
  expect(smtp.accepted).toHaveLength(1)
})

test.each([550, 553])(
  'a recipient refused with %i puts the device into error with a reason, without a retry',
  async (code) => {
    const registration = ofThisFile()
    const { control, smtp } = registration
    smtp.behave({ kind: 'refuse-recipient', code })
    const device = newDevice()
    await control.member.put(device)
    const failed = await untilState(registration, device._id, 'error')
    const reason = expect.stringContaining(`refused with ${code}`) as string
    expect(failed.error).toEqual({ code: 'mail_refused', reason, at: expect.any(String) as string })
    expect(smtp.tries).toBe(1)
  },
)

test('a mail that the server defers is sent again later', async () => {
  const registration = ofThisFile()
  const { control, smtp } = registration
  smtp.behave({ kind: 'refuse-message', code: 451 })
  const device = newDevice()
  await control.member.put(device)
  await eventually(async () =>
    expect((await control.admin.get(device._id)).docstate).toMatchObject({ failure: { code: 'mail_deferred' } }),
  )
  smtp.behave({ kind: 'accept' })
  await untilState(registration, device._id, 'confirming')
  expect(smtp.accepted).toHaveLength(1)
})

test('a mail whose acceptance was lost is sent again with its Message-ID, and both links work', async () => {
  const registration = ofThisFile()
  const { control, smtp } = registration
  smtp.behave({ kind: 'cut-after-message' })
  const device = newDevice()
  await control.member.put(device)
  await eventually(() => expect(smtp.accepted).toHaveLength(1))
  smtp.behave({ kind: 'accept' })
  await untilState(registration, device._id, 'confirming')
  const ids = smtp.accepted.map(({ messageId }) => messageId)
  expect(ids).toEqual([ids[0], ids[0]])
  expect(ids[0]).toMatch(/^<.+@.+>$/)
  const links = linksTo(registration, device.owner)
  expect(await typeCode(links[0]!)).toMatchObject({ status: 200, body: { ok: true } })
  expect(await typeCode(links[1]!)).toMatchObject({ status: 200, body: { ok: true } })
})

test('a sent link works while the next mail waits for its server, and cancels that mail', async () => {
  const registration = ofThisFile()
  const { control, smtp } = registration
  const device = newDevice()
  const link = await askForMail(registration, device)
  await smtp.down()
  await askAgain(registration, device._id)
  await eventually(async () =>
    expect((await control.admin.get(device._id)).docstate).toMatchObject({ failure: { code: 'mail_unreachable' } }),
  )
  expect(await typeCode(link, '9999')).toMatchObject({ status: 403 })
  expect(await typeCode(link)).toMatchObject({ status: 200, body: { password: expect.any(String) as string } })
  await smtp.up()
  expect(await untilState(registration, device._id, 'active')).not.toHaveProperty('docstate.failure')
  expect(smtp.accepted).toHaveLength(1)
})

test('a sent link works while the next mail is in transfer to the mail server', async () => {
  const registration = ofThisFile()
  const { control, smtp } = registration
  const device = newDevice()
  const link = await askForMail(registration, device)
  smtp.behave({ kind: 'slow', delayMs: 60_000 })
  await askAgain(registration, device._id)
  await eventually(() => expect(smtp.tries).toBe(2))
  expect((await control.admin.get(device._id)).docstate).toHaveProperty('claim')
  // At its next renewal the worker learns that its claim is lost, and handles the document again.
  const click = async () => expect((await typeCode(link)).body).toHaveProperty('password')
  const clicking = eventually(click)
  await untilState(registration, device._id, 'confirmed')
  await clicking
  await untilState(registration, device._id, 'active')
})
