import { pino } from 'pino'
import PostalMime from 'postal-mime'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ConfigError, failureOf, Reject } from '../../sidecar/core/errors.ts'
import { createMailer, type Mailer, type MailerOptions } from '../../sidecar/mail/mailer.ts'
import { startFaultySmtp, startMute, type FaultySmtp } from './faulty-smtp.ts'

const message = { to: 'owner@example.com', subject: 'Hello', text: 'One', html: '<p>One</p>' }
const eventually = (assertion: () => void) => vi.waitFor(assertion, { timeout: 10_000, interval: 10 })

let logged: string
const log = pino({ level: 'trace' }, { write: (line: string) => void (logged += line) })

let smtp: FaultySmtp
let mailers: Mailer[]
beforeEach(async () => {
  logged = ''
  mailers = []
  smtp = await startFaultySmtp()
})
afterEach(async () => {
  await Promise.all(mailers.map((mailer) => mailer.close()))
  await smtp.close()
})

function mailer(options: Partial<MailerOptions> = {}): Mailer {
  const made = createMailer({ smtpUrl: smtp.url, from: 'sidecar@example.org', log, ...options })
  mailers.push(made)
  return made
}

const entry = (
  from: Mailer,
  { key = 'k', done = [] as readonly string[], signal = new AbortController().signal } = {},
) => from.forEntry({ key, done, signal })

const failure = async (sending: Promise<unknown>): Promise<Error & { code: string }> => {
  const thrown: unknown = await sending.then(
    () => new Error('it was accepted'),
    (thrown: unknown) => thrown,
  )
  return thrown as Error & { code: string }
}

describe('a message', () => {
  it('arrives with sender, recipient, subject, text and HTML', async () => {
    await entry(mailer({ from: 'Photos <photos@example.org>' })).send({ ...message, subject: 'Grüße 🐧' })
    const mail = await PostalMime.parse(smtp.accepted[0] ?? '')
    expect(mail).toMatchObject({
      from: { name: 'Photos', address: 'photos@example.org' },
      to: [{ address: 'owner@example.com' }],
      subject: 'Grüße 🐧',
      text: 'One\n',
    })
    expect(mail.html).toContain('<p>One</p>')
    expect(mail.headers).toContainEqual(expect.objectContaining({ key: 'auto-submitted', value: 'auto-generated' }))
  })

  it('has a Message-ID made from the key of the entry and its number, the same on every try', async () => {
    const ids = async (key: string) => {
      const mail = entry(mailer(), { key })
      await mail.send(message)
      await mail.send(message)
      return mail.done
    }
    const first = await ids('a')
    expect(await ids('a')).toEqual(first)
    expect(new Set([...first, ...(await ids('b'))]).size).toBe(4)
    expect(first[0]).toMatch(/^<[0-9a-f]{40}@example\.org>$/)
    expect((await PostalMime.parse(smtp.accepted[0] ?? '')).messageId).toBe(first[0])
  })

  it('that was accepted on an earlier try is not sent again but counts as sent', async () => {
    const first = entry(mailer())
    await first.send(message)
    const second = entry(mailer(), { done: first.done })
    await second.send(message)
    await second.send({ ...message, text: 'Two' })
    expect(smtp.accepted).toHaveLength(2)
    expect(second.done).toHaveLength(2)
  })

  it('shares a few connections with all others', async () => {
    const shared = mailer()
    await Promise.all(Array.from({ length: 40 }, (_, n) => entry(shared, { key: `${n}` }).send(message)))
    expect(smtp.accepted).toHaveLength(40)
    expect(smtp.connections().made).toBeLessThanOrEqual(4)
  })

  it('leaves no address and no text in the log', async () => {
    await entry(mailer()).send(message)
    expect(logged).toContain('mail accepted')
    expect(logged).not.toMatch(/owner@|One/)
  })
})

describe('a message that can never be sent', () => {
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
  ])('is rejected before any connection: to %j', async (to) => {
    const thrown = await failure(entry(mailer()).send({ ...message, to: to as string }))
    expect(thrown).toBeInstanceOf(Reject)
    expect(thrown.code).toBe('bad_address')
    expect(smtp.connections().made).toBe(0)
  })

  it.each(['a\r\nBcc: b@example.com', 'a\nb', 'a\0b', 'a\u2028b', undefined, { path: '/etc/hosts' }])(
    'is rejected before any connection: subject %j',
    async (subject) => {
      const thrown = await failure(entry(mailer()).send({ ...message, subject: subject as string }))
      expect(thrown).toBeInstanceOf(Reject)
      expect(thrown.code).toBe('bad_header')
      expect(smtp.connections().made).toBe(0)
    },
  )

  it('does not read files or addresses that a document names', async () => {
    const thrown = await failure(entry(mailer()).send({ ...message, text: { path: '/etc/hosts' } as never }))
    expect(thrown).toBeInstanceOf(Reject)
    expect(thrown.code).toBe('bad_message')
  })

  it('is no hindrance to an address in another script', async () => {
    await entry(mailer()).send({ ...message, to: 'gerät@bücher.example' })
    expect((await PostalMime.parse(smtp.accepted[0] ?? '')).to).toEqual([
      expect.objectContaining({ address: expect.stringContaining('gerät@') as string }),
    ])
  })
})

describe('a server that refuses', () => {
  it.each(['mail', 'rcpt', 'data'] as const)('for good at %s has the document rejected', async (stage) => {
    smtp.become({ [stage]: { code: 550, text: 'no <owner@example.com>, ask boss@example.net' } })
    const thrown = await failure(entry(mailer()).send(message))
    expect(thrown).toBeInstanceOf(Reject)
    expect(failureOf(thrown).code).toBe('mail_refused')
    expect(thrown.message).toContain('550 no <owner@example.com>, ask ***')
    expect(smtp.accepted).toEqual([])
  })

  it.each(['mail', 'rcpt', 'data'] as const)('for now at %s is worth another try', async (stage) => {
    smtp.become({ [stage]: { code: 451, text: 'greylisted' } })
    const shared = mailer()
    const first = entry(shared)
    const thrown = await failure(first.send(message))
    expect(thrown).not.toBeInstanceOf(Reject)
    expect(thrown.code).toBe('mail_deferred')
    expect(first.done).toEqual([])

    smtp.become({})
    await entry(shared).send(message)
    expect(smtp.accepted).toHaveLength(1)
  })

  it.each(['mail', 'rcpt', 'data'] as const)('and closes (421) at %s is worth another try', async (stage) => {
    smtp.become({ [stage]: { code: 421, text: 'closing' } })
    const thrown = await failure(entry(mailer()).send(message))
    expect(thrown).not.toBeInstanceOf(Reject)
    expect(smtp.connections().made).toBe(1)
    expect(smtp.received.length).toBe(stage === 'data' ? 1 : 0)
  })

  it.each([
    ['login', 535],
    ['login', 454],
    ['mail', 530],
  ] as const)('the login (%s %d) is the fault of the operator: retried, and said loudly', async (stage, code) => {
    await smtp.close()
    smtp = await startFaultySmtp({ users: true })
    smtp.become({ [stage]: { code, text: 'no login for me@example.net' } })
    const shared = mailer()
    const thrown = await failure(entry(shared).send(message))
    expect(thrown).not.toBeInstanceOf(Reject)
    expect(thrown.code).toBe('mail_login')
    expect(thrown.message).not.toContain('example.net')
    expect(logged).toMatch(/"level":50.*SMTP_URL/)
    expect(logged).not.toMatch(/s3cret|me@example/)

    smtp.become({})
    await entry(shared).send(message)
    expect(smtp.accepted).toHaveLength(1)
  })
})

describe('a server that is not there', () => {
  it('is worth another try, and gets the message when it is back', async () => {
    await smtp.close()
    const shared = mailer()
    const thrown = await failure(entry(shared).send(message))
    expect(thrown.code).toBe('mail_unreachable')
    expect(thrown.message).not.toContain('127.0.0.1')

    smtp = await startFaultySmtp({ port: smtp.port })
    await entry(shared).send(message)
    expect(smtp.accepted).toHaveLength(1)
  })

  it.each([
    ['says nothing', ''],
    ['greets and says no more', '220 hello\r\n'],
    ['is no mail server', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['turns everybody away', '554 no\r\n'],
  ])('or %s is given up soon', async (_, greeting) => {
    const mute = await startMute({ greeting })
    const times = { connectMs: 100, silenceMs: 100 }
    const thrown = await failure(entry(mailer({ smtpUrl: mute.url, times })).send(message))
    expect(thrown.code).toBe('mail_unreachable')
    await mute.close()
  })
})

describe('a failure', () => {
  it.each(['', '?maxRequeues=5'])(
    'is never followed by another try of the pool itself: %j',
    async (asked) => {
      const mute = await startMute({ hangUp: true })
      const thrown = await failure(entry(mailer({ smtpUrl: mute.url + asked })).send(message))
      expect(thrown.code).toBe('mail_unreachable')
      expect(mute.made()).toBe(1)
      await mute.close()
    },
  )
})

describe('a message that was handed over', () => {
  it('is sent once and reported as failed when the connection is cut in its middle', async () => {
    smtp.become({ data: 'cut' })
    const thrown = await failure(entry(mailer()).send({ ...message, text: 'x'.repeat(500_000) }))
    expect(thrown.code).toBe('mail_unanswered')
    expect(smtp.connections().made).toBe(1)
    expect(smtp.received).toEqual([])
  })

  it('is sent once and reported as failed when the connection is cut before the answer', async () => {
    smtp.become({ data: 'cut-after' })
    const mail = entry(mailer())
    expect((await failure(mail.send(message))).code).toBe('mail_unanswered')
    expect(mail.done).toEqual([])
    expect(smtp.connections().made).toBe(1)
    expect(smtp.received).toHaveLength(1)
  })

  it('is sent once also over a connection that was used before', async () => {
    const shared = mailer()
    await entry(shared, { key: 'first' }).send(message)
    smtp.become({ data: 'cut-after' })
    expect((await failure(entry(shared).send(message))).code).toBe('mail_unanswered')
    expect(smtp.received).toHaveLength(2)
    expect(smtp.connections().made).toBe(1)
  })

  it('is given up after a time of silence', async () => {
    smtp.become({ data: { until: new Promise(() => {}) } })
    const thrown = await failure(entry(mailer({ times: { silenceMs: 200 } })).send(message))
    expect(thrown.code).toBe('mail_unanswered')
  })

  it('is given up after a time in all, however often the server says something', async () => {
    smtp.become({ data: { until: new Promise(() => {}) } })
    const thrown = await failure(entry(mailer({ times: { totalMs: 300 } })).send(message))
    expect(thrown.code).toBe('mail_unanswered')
  })

  it('gets its answer although the signal aborts meanwhile', async () => {
    const stop = new AbortController()
    const answered = withResolvers()
    smtp.become({ data: { until: answered.promise } })
    const mail = entry(mailer(), { signal: stop.signal })
    const sending = mail.send(message)
    await eventually(() => expect(smtp.received).toHaveLength(1))
    stop.abort(new Error('stopping'))
    answered.resolve()
    await sending
    expect(mail.done).toHaveLength(1)
  })
})

describe('the signal', () => {
  it('keeps a message from being begun', async () => {
    const thrown = await failure(entry(mailer(), { signal: AbortSignal.abort(new Error('stopping')) }).send(message))
    expect(thrown.message).toBe('stopping')
    expect(smtp.connections().made).toBe(0)
  })

  it('ends the waiting for a server that does not greet', async () => {
    const mute = await startMute()
    const stop = new AbortController()
    const sending = failure(entry(mailer({ smtpUrl: mute.url }), { signal: stop.signal }).send(message))
    stop.abort(new Error('stopping'))
    expect((await sending).message).toBe('stopping')
    await mute.close()
  })

  it('takes a message out of the queue for a connection, and no other', async () => {
    const answered = withResolvers()
    smtp.become({ data: { until: answered.promise } })
    const shared = mailer()
    const stop = new AbortController()
    const busy = Array.from({ length: 4 }, (_, n) => entry(shared, { key: `${n}` }).send(message))
    await eventually(() => expect(smtp.received).toHaveLength(4))
    const queued = failure(entry(shared, { key: 'queued', signal: stop.signal }).send(message))
    const other = entry(shared, { key: 'other' }).send(message)
    stop.abort(new Error('stopping'))
    expect((await queued).message).toBe('stopping')
    answered.resolve()
    await Promise.all([...busy, other])
    expect(smtp.accepted).toHaveLength(5)
  })
})

describe('the mailer', () => {
  it('tells whether it could send', async () => {
    await expect(mailer().verify()).resolves.toBeUndefined()
    await smtp.close()
    expect((await failure(mailer().verify())).code).toBe('mail_unreachable')
    smtp = await startFaultySmtp({ users: true })
    smtp.become({ login: { code: 535, text: 'no' } })
    expect((await failure(mailer().verify())).code).toBe('mail_login')
  })

  it('closes a connection that is idle', async () => {
    await entry(mailer({ times: { idleMs: 50 } })).send(message)
    await eventually(() => expect(smtp.connections()).toEqual({ made: 1, open: 0 }))
  })

  it('leaves no connection when it is closed, and fails what is under way', async () => {
    smtp.become({ data: { until: new Promise(() => {}) } })
    const shared = mailer()
    const sending = Array.from({ length: 6 }, (_, n) => failure(entry(shared, { key: `${n}` }).send(message)))
    await eventually(() => expect(smtp.received).toHaveLength(4))
    await shared.close()
    const codes = (await Promise.all(sending)).map((thrown) => thrown.code)
    expect(codes.sort()).toEqual(['mail_closed', 'mail_closed', ...Array<string>(4).fill('mail_unanswered')])
    await eventually(() => expect(smtp.connections().open).toBe(0))
    expect((await failure(entry(shared).send(message))).code).toBe('mail_closed')
  })

  it('needs a sender', () => {
    expect(() => mailer({ from: 'nobody' })).toThrow(ConfigError)
  })
})

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}
