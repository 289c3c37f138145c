import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import type { EntryMail } from '../../sidecar/docstate/mail.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createMailer, type Mailer, type MailerOptions } from '../../sidecar/mail/mailer.ts'

export const message = { to: 'owner@example.com', subject: 'Hello', text: 'One', html: '<p>One</p>' }

export interface TestMailer extends Mailer {
  /** The log so far, as JSON lines. */
  readonly logged: string
  /** Mail of one entry; by default its first attempt. */
  entry(options?: { key?: string; done?: readonly string[]; signal?: AbortSignal }): EntryMail
}

/** A mailer that closes with the running test. */
export function createTestMailer(smtpUrl: string, options: Partial<MailerOptions> = {}): TestMailer {
  let logged = ''
  const log = pino({ level: 'trace' }, { write: (line: string) => void (logged += line) })
  const mailer = createMailer({
    ...{ smtpUrl, from: 'sidecar@example.org', events: createEvents({ log }), clock: systemClock, log },
    ...options,
  })
  onTestFinished(() => mailer.close())
  return {
    ...mailer,
    get logged() {
      return logged
    },
    entry: ({ key = 'k', done = [], signal = new AbortController().signal } = {}) =>
      mailer.forEntry({ document: { database: 'shop', id: 'o1' }, key, done, signal }),
  }
}

/** The error of a promise that must reject. */
export const failure = (sending: Promise<unknown>): Promise<Error & { readonly code: string }> =>
  sending.then(
    () => Promise.reject(new Error('it did not fail')),
    (thrown: unknown) => thrown as Error & { code: string },
  )

/** A promise that the test resolves. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}
