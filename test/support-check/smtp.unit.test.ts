import { createTransport } from 'nodemailer'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'

const message = { from: 'us@example.com', to: 'ann@example.com', subject: 'Hi', text: 'Hello', messageId: '<1@us>' }

async function start() {
  const smtp = await startTestSmtp()
  const transport = createTransport(smtp.url)
  onTestFinished(() => transport.close())
  return { smtp, send: () => transport.sendMail(message) }
}

test('the server stores accepted mails, parsed', async () => {
  const { smtp, send } = await start()
  await send()
  expect(smtp.accepted).toMatchObject([{ subject: 'Hi', messageId: '<1@us>', envelope: { to: ['ann@example.com'] } }])
})

test.each([450, 550])('the server refuses a recipient with %i', async (code) => {
  const { smtp, send } = await start()
  smtp.behave({ kind: 'refuse-recipient', code })
  await expect(send()).rejects.toMatchObject({ responseCode: code })
  expect(smtp).toMatchObject({ accepted: [], tries: 1 })
})

test.each([451, 554])('the server refuses a message with %i', async (code) => {
  const { smtp, send } = await start()
  smtp.behave({ kind: 'refuse-message', code })
  await expect(send()).rejects.toMatchObject({ responseCode: code })
  expect(smtp.accepted).toEqual([])
})

test('a break during the message leaves it unaccepted', async () => {
  const { smtp, send } = await start()
  smtp.behave({ kind: 'cut-during-message' })
  await expect(send()).rejects.toThrow()
  expect(smtp.accepted).toEqual([])
})

test('a break before the reply leaves the message accepted', async () => {
  const { smtp, send } = await start()
  smtp.behave({ kind: 'cut-after-message' })
  await expect(send()).rejects.toThrow()
  expect(smtp.accepted).toHaveLength(1)
})

test.each(['slow', 'slow-greeting'] as const)('%s: the server answers slowly', async (kind) => {
  const { smtp, send } = await start()
  smtp.behave({ kind, delayMs: 100 })
  const before = performance.now()
  await send()
  expect(performance.now() - before).toBeGreaterThan(90)
})

test('a slow server does not outlive its test', async () => {
  const { smtp, send } = await start()
  smtp.behave({ kind: 'slow', delayMs: 600_000 })
  void send().catch(() => 'the end of the test breaks it')
  await eventually(() => expect(smtp.tries).toBe(1))
})

test('the server goes down and comes up again', async () => {
  const { smtp, send } = await start()
  await smtp.down()
  await expect(send()).rejects.toMatchObject({ code: 'ESOCKET' })
  await smtp.up()
  await send()
  expect(smtp.accepted).toHaveLength(1)
})
