import { describe, expect, it } from 'vitest'
import { Reject } from '../../sidecar/core/errors.ts'
import { failureOf } from '../../sidecar/core/failure.ts'
import { startFaultySmtp, startMute } from './faulty-smtp.ts'
import { createTestMailer, failure, gate, message } from './test-mailer.ts'

const stages = ['mail', 'rcpt', 'data'] as const

describe('a mail server that refuses', () => {
  it.each(stages)('a permanent refusal at %s rejects the document', async (stage) => {
    const smtp = await startFaultySmtp()
    smtp.become({ [stage]: { code: 550, text: 'no <owner@example.com>, ask boss@example.net' } })
    const thrown = await failure(createTestMailer(smtp.url).entry().send(message))
    expect(thrown).toBeInstanceOf(Reject)
    expect(failureOf(thrown).code).toBe('mail_refused')
    expect(thrown.message).toContain('550 no <owner@example.com>, ask ***')
    expect(smtp.accepted).toEqual([])
  })

  it.each(stages)('a temporary refusal at %s is retried', async (stage) => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url)
    smtp.become({ [stage]: { code: 451, text: 'greylisted' } })
    const first = mailer.entry()
    const thrown = await failure(first.send(message))
    expect(thrown).not.toBeInstanceOf(Reject)
    expect(thrown.code).toBe('mail_deferred')
    expect(first.done).toEqual([])

    smtp.become({})
    await mailer.entry().send(message)
    expect(smtp.accepted).toHaveLength(1)
  })

  it.each(stages)('a refusal that closes the connection (421) at %s is retried', async (stage) => {
    const smtp = await startFaultySmtp()
    smtp.become({ [stage]: { code: 421, text: 'closing' } })
    const thrown = await failure(createTestMailer(smtp.url).entry().send(message))
    expect(thrown).not.toBeInstanceOf(Reject)
    expect(smtp.connections().made).toBe(1)
    expect(smtp.received).toHaveLength(stage === 'data' ? 1 : 0)
  })

  it.each([
    ['login', 535],
    ['login', 454],
    ['mail', 530],
  ] as const)(
    'a refused login (%s %d) is the operator’s fault: the mail is retried, and the log has an error',
    async (stage, code) => {
      const smtp = await startFaultySmtp({ users: true })
      const mailer = createTestMailer(smtp.url)
      smtp.become({ [stage]: { code, text: 'no login for me@example.net' } })
      const thrown = await failure(mailer.entry().send(message))
      expect(thrown).not.toBeInstanceOf(Reject)
      expect(thrown.code).toBe('mail_login')
      expect(thrown.message).not.toContain('example.net')
      expect(mailer.logged).toMatch(/"level":50.*SMTP_URL/)
      expect(mailer.logged).not.toMatch(/s3cret|me@example/)

      smtp.become({})
      await mailer.entry().send(message)
      expect(smtp.accepted).toHaveLength(1)
    },
  )
})

describe('a mail server that is unreachable', () => {
  it('an unreachable server is reported, and the next attempt delivers when it is up again', async () => {
    const stopped = await startFaultySmtp()
    await stopped.close()
    const mailer = createTestMailer(stopped.url)
    const thrown = await failure(mailer.entry().send(message))
    expect(thrown.code).toBe('mail_unreachable')
    expect(thrown.message).not.toContain('127.0.0.1')

    const smtp = await startFaultySmtp({ port: stopped.port })
    await mailer.entry().send(message)
    expect(smtp.accepted).toHaveLength(1)
  })

  it.each([
    ['stays silent', ''],
    ['stays silent after its greeting', '220 hello\r\n'],
    ['is not a mail server', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['refuses every client', '554 no\r\n'],
  ])('an attempt with a server that %s ends soon', async (_, greeting) => {
    const mute = await startMute({ greeting })
    const mailer = createTestMailer(mute.url, { times: { connectMs: 100, silenceMs: 100 } })
    expect((await failure(mailer.entry().send(message))).code).toBe('mail_unreachable')
  })

  it('an abort ends the wait for a silent server', async () => {
    const mute = await startMute()
    const stop = new AbortController()
    const sending = failure(createTestMailer(mute.url).entry({ signal: stop.signal }).send(message))
    stop.abort(new Error('stopping'))
    expect((await sending).message).toBe('stopping')
  })

  it.each(['', '?maxRequeues=5'])(
    'the pool does not retry a server by itself, even with %j in the URL',
    async (requested) => {
      const mute = await startMute({ hangUp: true })
      const thrown = await failure(
        createTestMailer(mute.url + requested)
          .entry()
          .send(message),
      )
      expect(thrown.code).toBe('mail_unreachable')
      expect(mute.made()).toBe(1)
    },
  )
})

describe('a message after its transfer has begun', () => {
  it('a message is sent once and reported as failed when the connection is cut in the middle', async () => {
    const smtp = await startFaultySmtp()
    smtp.become({ data: 'cut' })
    const sending = createTestMailer(smtp.url)
      .entry()
      .send({ ...message, text: 'x'.repeat(500_000) })
    expect((await failure(sending)).code).toBe('mail_unanswered')
    expect(smtp.connections().made).toBe(1)
    expect(smtp.received).toEqual([])
  })

  it('a message is sent once and reported as failed when the connection is cut before the answer', async () => {
    const smtp = await startFaultySmtp()
    smtp.become({ data: 'cut-after' })
    const entry = createTestMailer(smtp.url).entry()
    expect((await failure(entry.send(message))).code).toBe('mail_unanswered')
    expect(entry.done).toEqual([])
    expect(smtp.connections().made).toBe(1)
    expect(smtp.received).toHaveLength(1)
  })

  it('a message is sent once, also over a reused connection', async () => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url)
    await mailer.entry({ key: 'first' }).send(message)
    smtp.become({ data: 'cut-after' })
    expect((await failure(mailer.entry().send(message))).code).toBe('mail_unanswered')
    expect(smtp.received).toHaveLength(2)
    expect(smtp.connections().made).toBe(1)
  })

  it.each([{ silenceMs: 1000 }, { totalMs: 2000 }])('a message without an answer times out: %o', async (times) => {
    const smtp = await startFaultySmtp()
    smtp.become({ data: { until: gate().opened } })
    const thrown = await failure(createTestMailer(smtp.url, { times }).entry().send(message))
    expect(thrown.code).toBe('mail_unanswered')
  })
})
