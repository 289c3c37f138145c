import pino from 'pino'
import { expect, test } from 'vitest'
import { createEvents } from '../../sidecar/events/channels.ts'
import { startFaultySmtp } from './faulty-smtp.ts'
import { createTestMailer, failure, message } from './test-mailer.ts'

test('an accepted and a failed mail each emit an event with the Message-ID', async () => {
  const smtp = await startFaultySmtp()
  const events = createEvents({ log: pino({ level: 'silent' }) })
  const received: unknown[] = []
  for (const name of ['mail:sent', 'mail:failed'] as const) {
    events.subscribe(name, ({ event }) => void received.push([name, event]))
  }
  const entry = createTestMailer(smtp.url, { events }).entry()
  await entry.send(message)
  const message_id = entry.done[0]
  expect(received).toEqual([['mail:sent', { message_id, to: message.to }]])

  const mailer = createTestMailer('smtp://127.0.0.1:9', { events }).entry()
  const { code } = await failure(mailer.send(message))
  expect(received.slice(1)).toEqual([
    ['mail:failed', { message_id, to: message.to, code, reason: expect.any(String) as string }],
  ])
})
