import { expect, test } from 'vitest'
import { noMails } from '../../sidecar/mail/mail-metrics.ts'
import { startFaultySmtp } from './faulty-smtp.ts'
import { createTestMailer, failure, message } from './test-mailer.ts'

test('accepted mails are counted, and failed attempts by their code', async () => {
  const smtp = await startFaultySmtp()
  const mailer = createTestMailer(smtp.url)
  const { failed } = noMails()
  const entry = mailer.entry()
  await entry.send(message)
  await entry.send(message)
  await mailer.entry({ done: entry.done }).send(message)
  expect(mailer.counts, 'the third message was sent on an earlier attempt').toEqual({ sent: 2, failed })

  smtp.become({ rcpt: { code: 450, text: 'later' } })
  await failure(mailer.entry().send(message))
  await failure(mailer.entry().send(message))
  smtp.become({ rcpt: { code: 550, text: 'never' } })
  await failure(mailer.entry().send(message))
  await failure(mailer.entry().send({ ...message, to: 'nobody' }))
  expect(mailer.counts).toEqual({ sent: 2, failed: { ...failed, mail_deferred: 2, mail_refused: 1, bad_address: 1 } })
})

test('an aborted attempt is not counted', async () => {
  const smtp = await startFaultySmtp()
  const mailer = createTestMailer(smtp.url)
  const stopped = AbortSignal.abort(new Error('the handler must end'))
  await failure(mailer.entry({ signal: stopped }).send(message))
  expect(mailer.counts).toEqual(noMails())
})
