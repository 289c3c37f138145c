import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import PostalMime from 'postal-mime'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { startOnFreePort } from './free-port.ts'
import type { Log } from './log.ts'

/** A received message. */
export interface CaughtMail {
  /** Counts from 1, never reused. */
  readonly id: number
  /** Address in the `From` header; without that header, the envelope's sender. */
  readonly from: string
  /** Recipients of the envelope: the actual ones, even if the headers differ. */
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
  readonly html: string
  /** With angle brackets; empty if the message has none. */
  readonly messageId: string
  readonly receivedAt: string
}

export interface MailCatcher {
  /** `smtp://127.0.0.1:port`. */
  readonly smtpUrl: string
  /** The last 100 mails, newest last. */
  readonly mails: readonly CaughtMail[]
  /** Closes the server and every connection. */
  close(): Promise<void>
}

export interface MailCatcherOptions {
  readonly log: Log
  /** Preferred port; if it is taken, the next free one. Default 1025. */
  readonly port?: number
}

const MAX_MAILS = 100
const MAX_BYTES = 10 * 1024 * 1024

/** Starts a mail server on 127.0.0.1 that accepts every message, delivers none, and keeps the last 100. */
export async function startMailCatcher({ log, port = 1025 }: MailCatcherOptions): Promise<MailCatcher> {
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
      receivedAt: new Date().toISOString(),
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
