import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { Hono } from 'hono'
import { createTransport } from 'nodemailer'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { startMailCatcher } from '../../embedded/src/mail-catcher.ts'
import { mailboxPage } from '../../sidecar/embedded/mailbox-feature.ts'

async function startCatcher(port = 11_025) {
  const catcher = await startMailCatcher({ log: pino({ level: 'silent' }), port })
  const transport = createTransport(catcher.smtpUrl)
  onTestFinished(async () => {
    transport.close()
    await catcher.close()
  })
  return { catcher, transport }
}

const message = {
  from: 'Us <us@example.com>',
  to: 'ann@example.com',
  subject: 'Grüße',
  text: 'Hello',
  html: '<b>Hello</b>',
}

test('the catcher keeps a mail with both texts', async () => {
  const { catcher, transport } = await startCatcher()
  await transport.sendMail({ ...message, messageId: '<1@example.com>', bcc: 'bob@example.com' })
  expect(catcher.mails[0]).toEqual({
    id: 1,
    from: 'us@example.com',
    to: ['ann@example.com', 'bob@example.com'],
    subject: 'Grüße',
    text: 'Hello\n',
    html: '<b>Hello</b>\n',
    messageId: '<1@example.com>',
    receivedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
  })
})

test('the catcher keeps the last hundred mails', async () => {
  const { catcher } = await startCatcher()
  const pool = createTransport({ url: catcher.smtpUrl, pool: true })
  for (let i = 1; i <= 101; i++) await pool.sendMail({ ...message, subject: `mail ${i}` })
  expect(catcher.mails).toHaveLength(100)
  expect(catcher.mails[0]?.subject).toBe('mail 2')
  pool.close()
})

test('the catcher refuses a message of more than ten megabytes', async () => {
  const { catcher, transport } = await startCatcher()
  const sending = transport.sendMail({ ...message, text: 'x'.repeat(11 * 1024 * 1024) })
  await expect(sending).rejects.toMatchObject({ responseCode: 552 })
  expect(catcher.mails).toEqual([])
})

test('the catcher takes the next port if its port is in use', async () => {
  const occupant = createServer()
  await once(occupant.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void occupant.close())
  const { port } = occupant.address() as AddressInfo
  const { catcher } = await startCatcher(port)
  expect(Number(new URL(catcher.smtpUrl).port)).toBeGreaterThan(port)
})

test('the catcher closes while a client stays connected', async () => {
  const { catcher } = await startCatcher()
  const pool = createTransport({ url: catcher.smtpUrl, pool: true })
  await pool.sendMail(message)
  await catcher.close()
  await expect(pool.sendMail(message)).rejects.toThrow()
  pool.close()
})

test('the page lists the newest mail first, shows one, and gives all as JSON', async () => {
  const { catcher, transport } = await startCatcher()
  const page = mailboxPage(catcher)
  expect(await (await page.request('/')).text()).toContain('No mail yet')
  await transport.sendMail({
    ...message,
    subject: 'older',
    text: 'Confirm at https://example.com/confirm?a=1&b=2 now.',
  })
  await transport.sendMail({ ...message, subject: 'newer' })
  const list = await (await page.request('/')).text()
  expect(list.indexOf('newer')).toBeLessThan(list.indexOf('older'))
  expect(list).toContain('href="/1"')
  const shown = await (await page.request('/1')).text()
  expect(shown).toContain('href="https://example.com/confirm?a=1&amp;b=2"')
  expect(await (await page.request('/api/mails')).json()).toMatchObject([{ subject: 'newer' }, { subject: 'older' }])
  expect((await page.request('/3')).status).toBe(404)
})

test('links of a page mounted below a path stay below it', async () => {
  const { catcher, transport } = await startCatcher()
  await transport.sendMail(message)
  const app = new Hono().route('/_mail', mailboxPage(catcher))
  expect(await (await app.request('/_mail')).text()).toContain('href="/_mail/1"')
  expect(await (await app.request('/_mail/1')).text()).toContain('href="/_mail"')
})

test('no content of a message becomes part of the page', async () => {
  const { catcher, transport } = await startCatcher()
  const evil = '"><script>alert(1)</script>'
  await transport.sendMail({ from: message.from, to: message.to, subject: evil, text: evil, html: evil })
  const page = mailboxPage(catcher)
  for (const path of ['/', '/1']) {
    const answer = await page.request(path)
    expect(await answer.text()).not.toContain('<script')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
  }
})
