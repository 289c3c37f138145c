/**
 * Sends mail for handlers. A message belongs to an entry of a document into a state and is known by its Message-ID,
 * made from the entry's key and the number of the message within it: the same on every try, so that one that was seen
 * to be accepted is not sent again, and one that was perhaps accepted can be recognised by whoever receives it twice.
 */
import { domainToASCII } from 'node:url'
import type { Logger } from 'pino'
import { ConfigError } from '../core/errors.ts'
import type { Events } from '../events/channels.ts'
import type { MailBinding, Message } from '../docstate/mail.ts'
import { domainOf, parseSender, wireAddress } from './address.ts'
import { countFailure, noMails, type MailCounts } from './counts.ts'
import { MailError, withoutOthers, type DeliveryError } from './failure.ts'
import { checkMessage, messageIdOf } from './message.ts'
import { createTransport, defaultTimes, type MailTimes } from './transport.ts'

export interface MailerOptions {
  /** `smtp://user:password@host:587`, or `smtps://` for TLS from the first byte. */
  readonly smtpUrl: string
  /** `sidecar@example.com` or `Sidecar <sidecar@example.com>`. */
  readonly from: string
  readonly log: Logger
  readonly events: Events
  readonly times?: Partial<MailTimes>
}

export interface Mailer extends MailBinding {
  readonly counts: MailCounts
  /** Ends every connection. Messages under way fail; resolves when they have. */
  close(): Promise<void>
}

/** @throws ConfigError if `from` is no address */
export function createMailer({ smtpUrl, from, log, events, times }: MailerOptions): Mailer {
  const sender = parseSender(from)
  if (!sender) throw new ConfigError([`SIDECAR_MAIL_FROM: expected an address, got "${from}"`])
  const domain = domainToASCII(domainOf(sender.address)) || 'localhost'
  const transport = createTransport(smtpUrl, { ...defaultTimes, ...times })
  const underWay = new Set<Promise<string>>()
  const counts = noMails()

  async function deliver(message: Message, messageId: string, signal: AbortSignal): Promise<void> {
    const { to, subject, text, html } = message
    const delivery = transport.deliver(
      {
        from: { ...sender },
        to: { name: '', address: wireAddress(to) },
        subject,
        text,
        ...(html === undefined ? {} : { html }),
        messageId,
        headers: { 'Auto-Submitted': 'auto-generated' },
        xMailer: false,
      },
      signal,
    )
    underWay.add(delivery)
    try {
      const answer = await delivery
      counts.sent += 1
      events.channel('mail:sent')?.publish({ message_id: messageId, to })
      log.debug({ messageId, answer: withoutOthers(answer, '') }, 'mail accepted')
    } catch (thrown) {
      report(thrown, messageId, to)
      throw thrown
    } finally {
      underWay.delete(delivery)
    }
  }

  function report(thrown: unknown, messageId: string, to: string): void {
    if (!(thrown instanceof MailError)) return
    const { code, response, message } = thrown.cause as DeliveryError
    const why = withoutOthers(response ?? message, '')
    events
      .channel('mail:failed')
      ?.publish({ message_id: messageId, to, code: thrown.code, reason: withoutOthers(thrown.message, '') })
    if (thrown.code === 'mail_login') {
      log.error({ code, why }, 'no mail can be sent: the mail server refuses the user or the password in SMTP_URL')
    } else log.warn({ messageId, code, why }, thrown.message)
  }

  return {
    counts,
    forEntry({ key, done: before, signal }) {
      const done = [...before]
      let count = 0
      return {
        get done() {
          return [...done]
        },
        async send(message) {
          const messageId = messageIdOf(key, ++count, domain)
          if (done.includes(messageId)) return
          try {
            checkMessage(message)
            await deliver(message, messageId, signal)
          } catch (thrown) {
            countFailure(counts, thrown)
            throw thrown
          }
          done.push(messageId)
        },
      }
    },
    async close() {
      transport.close()
      await Promise.allSettled(underWay)
    },
  }
}
