import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import type { Logger } from 'pino'
import type { SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import { systemClock, isoTime, type Clock } from '../core/clock.ts'
import { startOnFreePort } from './free-port.ts'
import { loadOptional } from './optional.ts'

/** A message as it was received. */
export interface CaughtMail {
  /** Counts from 1, never reused. */
  readonly id: number
  /** The address in its `From` header, or of the envelope where it has none. */
  readonly from: string
  /** The addresses of the envelope: to whom it was delivered, whatever the headers say. */
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
  readonly html: string
  /** With its angle brackets; empty where the message has none. */
  readonly messageId: string
  readonly receivedAt: string
}

export interface MailCatcher {
  /** `smtp://127.0.0.1:port`. */
  readonly smtpUrl: string
  /** The last hundred, the newest last. */
  readonly mails: readonly CaughtMail[]
  /** Drops every connection. */
  close(): Promise<void>
}

export interface MailCatcherOptions {
  readonly log: Logger
  /** Tried first, then the next free one. Default 1025. */
  readonly port?: number
  readonly clock?: Clock
}

const MAX_MAILS = 100
const MAX_BYTES = 10 * 1024 * 1024

/**
 * The mail server for somebody who has none: takes every message, delivers none, and keeps the last hundred to look
 * at (`mailboxPage`). On 127.0.0.1 only. Throws `ConfigError` where its optional dependencies are not installed.
 */
export async function startMailCatcher({
  log,
  port = 1025,
  clock = systemClock,
}: MailCatcherOptions): Promise<MailCatcher> {
  const { SMTPServer } = await loadOptional('smtp-server', 'SMTP_URL', () => import('smtp-server'))
  const { default: PostalMime } = await loadOptional('postal-mime', 'SMTP_URL', () => import('postal-mime'))
  const mails: CaughtMail[] = []
  let received = 0

  async function receive(stream: SMTPServerDataStream, { envelope }: SMTPServerSession): Promise<void> {
    const raw = await buffer(stream)
    if (stream.sizeExceeded) throw Object.assign(new Error('the message is too large'), { responseCode: 552 })
    const parsed = await PostalMime.parse(raw)
    const mail: CaughtMail = {
      id: ++received,
      from: parsed.from?.address ?? (envelope.mailFrom ? envelope.mailFrom.address : ''),
      to: envelope.rcptTo.map(({ address }) => address),
      subject: parsed.subject ?? '',
      text: parsed.text ?? '',
      html: parsed.html ?? '',
      messageId: parsed.messageId ?? '',
      receivedAt: isoTime(clock.now()),
    }
    if (mails.push(mail) > MAX_MAILS) mails.shift()
    log.info({ to: mail.to, subject: mail.subject }, 'mail caught')
  }

  return startOnFreePort(port, async (port) => {
    const server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      disableReverseLookup: true,
      size: MAX_BYTES,
      onData: (stream, session, done) => void receive(stream, session).then(() => done(), done),
    })
    server.on('error', (error) => log.debug({ error }, 'mail catcher'))
    await once(server.listen(port, '127.0.0.1'), 'listening')
    return {
      smtpUrl: `smtp://127.0.0.1:${port}`,
      mails,
      async close() {
        const closed = once(server.server, 'close')
        server.close()
        for (const connection of server.connections) connection.close()
        await closed
      },
    }
  })
}
