import PostalMime from 'postal-mime'
import { expect, test } from 'vitest'
import { startFaultySmtp } from '../mail/faulty-smtp.ts'
import { couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { linkIn, newDevice, startRegistration, typeCode, untilState } from './registration.ts'

test('the sidecar prints no secret, at the most verbose log level and with every failure', async () => {
  const smtp = await startFaultySmtp({ users: true })
  const proxy = await startFaultyProxy()
  const registration = await startRegistration({
    COUCHDB_URL: proxy.url,
    SMTP_URL: smtp.url,
    SIDECAR_LOG_LEVEL: 'trace',
  })
  const { control, sidecar } = registration
  smtp.become({ login: { code: 535, text: 'wrong' } })
  const device = newDevice()
  await control.member.put(device)
  await eventually(() => expect(sidecar.output()).toContain('mail_login'))
  smtp.become({ data: 'cut-after' })
  await eventually(() => expect(sidecar.output()).toContain('mail_unanswered'))
  smtp.become({})
  await untilState(registration, device._id, 'confirming')
  const link = linkIn((await PostalMime.parse(smtp.accepted[0]!)).text, sidecar.url)

  proxy.next(refuse(500), ({ path }) => path.includes('/confirm%3A'))
  expect(await typeCode(link)).toMatchObject({ status: 503 })
  proxy.next(refuse(500), ({ path }) => path.startsWith('/_users/'))
  expect(await typeCode(link, '0000')).toMatchObject({ status: 403 })
  const { body } = await typeCode(link)
  expect(body.password).toEqual(expect.any(String))
  expect(await sidecar.stop()).toBe(0)

  const { username, password } = new URL(couchUrl())
  const credentials = `${username}:${password}`
  const secrets = ['s3cret', link.split('/').at(-1)!, body.password!, `${credentials}@`, btoa(credentials)]
  expect(sidecar.output()).toContain('"handled"')
  for (const secret of secrets) expect(sidecar.output()).not.toContain(secret)
})
