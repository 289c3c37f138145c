import { expect, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { needs } from '../support/couchdb.ts'
import { linksTo, logIn, newDevice, startRegistration, untilState } from './registration.ts'

const phone = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, javaScriptEnabled: false }

test('a device registers with one mail, its link and the displayed code, and gets its own user', async () => {
  needs('browser')
  needs('pbkdf2 other than sha1')
  const registration = await startRegistration()
  const { control, smtp } = registration
  const device = newDevice()
  await control.member.put(device)
  await untilState(registration, device._id, 'confirming')
  expect(smtp.accepted.map(({ envelope }) => envelope.to)).toEqual([[device.owner]])
  const link = linksTo(registration, device.owner)[0]!

  const browser = await openBrowser()
  const page = await (await browser.newContext(phone)).newPage()
  await page.goto(link)
  await page.getByLabel('Code on the device').fill('1234')
  await page.getByRole('button', { name: 'Confirm this device' }).tap()
  await page.getByRole('heading', { name: 'Your device is confirmed' }).waitFor()
  const [user, password] = await page.locator('dd').allInnerTexts()

  const active = await untilState(registration, device._id, 'active')
  expect(active).toMatchObject({ user, owner: device.owner, name: 'phone' })
  expect(active).not.toHaveProperty('credentials')
  expect(await logIn(user!, password!)).toEqual({ status: 200, roles: [active.owner_role] })
  expect(await logIn(user!, 'wrong')).toEqual({ status: 401 })
  expect(smtp.accepted).toHaveLength(1)

  const code = link.split('/').at(-1)!
  const written = JSON.stringify(await control.documents())
  expect(written).toContain(device._id)
  expect(written).not.toContain(code)
  expect(written).not.toContain(password)
})
