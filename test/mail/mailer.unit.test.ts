import PostalMime from 'postal-mime'
import { describe, expect, it } from 'vitest'
import { ConfigError, Reject } from '../../sidecar/core/errors.ts'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'
import { startFaultySmtp } from './faulty-smtp.ts'
import { createTestMailer, failure, gate, message } from './test-mailer.ts'

const parsed = (raw: string | undefined) => PostalMime.parse(raw ?? '')

describe('a message', () => {
  it('a message arrives with sender, recipient, subject, text and HTML', async () => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url, { from: 'Photos <photos@example.org>' })
    await mailer.entry().send({ ...message, subject: 'Grüße 🐧' })
    const mail = await parsed(smtp.accepted[0])
    expect(mail).toMatchObject({
      from: { name: 'Photos', address: 'photos@example.org' },
      to: [{ address: 'owner@example.com' }],
      subject: 'Grüße 🐧',
    })
    expect(mail.text?.trim()).toBe('One')
    expect(mail.html).toContain('<p>One</p>')
    expect(mail.headers).toContainEqual(expect.objectContaining({ key: 'auto-submitted', value: 'auto-generated' }))
  })

  it('a message has a Message-ID made from the entry’s key and its number, equal on every attempt', async () => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url)
    const ids = async (key: string) => {
      const entry = mailer.entry({ key })
      await entry.send(message)
      await entry.send(message)
      return entry.done
    }
    const first = await ids('a')
    expect(await ids('a')).toEqual(first)
    expect(new Set([...first, ...(await ids('b'))]).size).toBe(4)
    expect(first[0]).toMatch(/^<[0-9a-f]{40}@example\.org>$/)
    expect((await parsed(smtp.accepted[0])).messageId).toBe(first[0])
  })

  it('a message accepted on an earlier attempt is not sent again but counts as sent', async () => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url)
    const first = mailer.entry()
    await first.send(message)
    const second = mailer.entry({ done: first.done })
    await second.send(message)
    await second.send({ ...message, text: 'Two' })
    expect(smtp.accepted).toHaveLength(2)
    expect(second.done).toHaveLength(2)
  })

  it('messages share a few connections', async () => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url)
    await Promise.all(Array.from({ length: 40 }, (_, n) => mailer.entry({ key: `${n}` }).send(message)))
    expect(smtp.accepted).toHaveLength(40)
    expect(smtp.connections().made).toBeLessThanOrEqual(4)
  })

  it('the log contains no address and no text of a message', async () => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url)
    await mailer.entry().send(message)
    expect(mailer.logged).toContain('mail accepted')
    expect(mailer.logged).not.toMatch(/owner@|One/)
  })

  it.each(['ann@münchen.de', 'ann@MÜNCHEN.de', 'ann@xn--mnchen-3ya.de'])(
    'a message goes to an international domain in Punycode: %s',
    async (to) => {
      const smtp = await startTestSmtp()
      await createTestMailer(smtp.url)
        .entry()
        .send({ ...message, to })
      expect(smtp.commands).toEqual(['RCPT TO:<ann@xn--mnchen-3ya.de>'])
      expect(smtp.accepted[0]).toMatchObject({ to: [{ address: 'ann@xn--mnchen-3ya.de' }] })
    },
  )

  it('a message may go to an address in another script', async () => {
    const smtp = await startFaultySmtp()
    await createTestMailer(smtp.url)
      .entry()
      .send({ ...message, to: 'gerät@bücher.example' })
    const [to] = (await parsed(smtp.accepted[0])).to ?? []
    expect(to?.address).toContain('gerät@')
  })
})

describe('an invalid message is rejected before any connection', () => {
  const rejection = async (wrong: object) => {
    const smtp = await startFaultySmtp()
    const thrown = await failure(
      createTestMailer(smtp.url)
        .entry()
        .send({ ...message, ...wrong }),
    )
    expect(thrown).toBeInstanceOf(Reject)
    expect(smtp.connections().made).toBe(0)
    return thrown.code
  }

  it.each([
    'nobody',
    'a@b@c',
    'a@example.com, b@example.com',
    'a@example.com\r\nBcc: b@example.com',
    'a@example.com\nDATA',
    'a b@example.com',
    '<a@example.com>',
    'A <a@example.com>',
    '"a"@example.com',
    'a@example..com',
    'a@-example.com',
    'a@example.com\0',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(300)}.com`,
    '',
    undefined,
    7,
    ['a@example.com', 'b@example.com'],
    { address: 'a@example.com' },
  ])('a message to %j is rejected', async (to) => {
    expect(await rejection({ to })).toBe('bad_address')
  })

  it.each(['a\r\nBcc: b@example.com', 'a\nb', 'a\0b', 'a\u2028b', undefined, { path: '/etc/hosts' }])(
    'a message with the subject %j is rejected',
    async (subject) => {
      expect(await rejection({ subject })).toBe('bad_header')
    },
  )

  it.each([{ text: { path: '/etc/hosts' } }, { html: { href: 'http://127.0.0.1/' } }, { text: undefined }])(
    'a message with a body that is not text is rejected: %j',
    async (wrong) => {
      expect(await rejection(wrong)).toBe('bad_message')
    },
  )
})

describe('the signal of a handler', () => {
  it('an aborted signal prevents a message from starting', async () => {
    const smtp = await startFaultySmtp()
    const signal = AbortSignal.abort(new Error('stopping'))
    const thrown = await failure(createTestMailer(smtp.url).entry({ signal }).send(message))
    expect(thrown.message).toBe('stopping')
    expect(smtp.connections().made).toBe(0)
  })

  it('an aborted signal removes its own message from the queue, and no other', async () => {
    const smtp = await startFaultySmtp()
    const mailer = createTestMailer(smtp.url)
    const answer = gate()
    const stop = new AbortController()
    smtp.become({ data: { until: answer.opened } })
    const busy = Array.from({ length: 4 }, (_, n) => mailer.entry({ key: `${n}` }).send(message))
    await eventually(() => expect(smtp.received).toHaveLength(4))
    const queued = failure(mailer.entry({ key: 'queued', signal: stop.signal }).send(message))
    const other = mailer.entry({ key: 'other' }).send(message)
    stop.abort(new Error('stopping'))
    expect((await queued).message).toBe('stopping')
    answer.open()
    await Promise.all([...busy, other])
    expect(smtp.accepted).toHaveLength(5)
  })

  it('an aborted signal does not cancel the answer for a message that was handed over', async () => {
    const smtp = await startFaultySmtp()
    const answer = gate()
    const stop = new AbortController()
    smtp.become({ data: { until: answer.opened } })
    const entry = createTestMailer(smtp.url).entry({ signal: stop.signal })
    const sending = entry.send(message)
    await eventually(() => expect(smtp.received).toHaveLength(1))
    stop.abort(new Error('stopping'))
    answer.open()
    await sending
    expect(entry.done).toHaveLength(1)
  })
})

describe('the mailer', () => {
  it('the mailer closes an idle connection', async () => {
    const smtp = await startFaultySmtp()
    await createTestMailer(smtp.url, { times: { idleMs: 50 } })
      .entry()
      .send(message)
    await eventually(() => expect(smtp.connections()).toEqual({ made: 1, open: 0 }))
  })

  it('the mailer closes all connections at its end, and fails open messages', async () => {
    const smtp = await startFaultySmtp()
    smtp.become({ data: { until: gate().opened } })
    const mailer = createTestMailer(smtp.url)
    const sending = Array.from({ length: 6 }, (_, n) => failure(mailer.entry({ key: `${n}` }).send(message)))
    await eventually(() => expect(smtp.received).toHaveLength(4))
    await mailer.close()
    const codes = (await Promise.all(sending)).map((thrown) => thrown.code)
    expect(codes.sort()).toEqual(['mail_closed', 'mail_closed', ...Array<string>(4).fill('mail_unanswered')])
    await eventually(() => expect(smtp.connections().open).toBe(0))
    expect((await failure(mailer.entry().send(message))).code).toBe('mail_closed')
  })

  it('the mailer needs a sender', () => {
    expect(() => createTestMailer('smtp://127.0.0.1', { from: 'nobody' })).toThrow(ConfigError)
  })
})
