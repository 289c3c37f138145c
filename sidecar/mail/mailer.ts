/**
 * Sends mail for handlers. A message belongs to an entry of a document into a state. Its Message-ID is made from the
 * entry's key and the message's number in the entry: it is the same on every try. A message whose acceptance was seen
 * is not sent again. If the acceptance is unknown, a receiver can recognise the second copy.
 */
import { domainToASCII } from 'node:url'
import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import { ConfigError, Reject } from '../core/errors.ts'
import type { Events } from '../events/channels.ts'
import type { MailBinding, Message } from '../docstate/mail.ts'
import { domainOf, parseSender, wireAddress, isAddress } from './address.ts'
import { countFailure, noMails, type MailCounts } from './mail-metrics.ts'
import { MailError, withoutOthers, type DeliveryError } from './failure.ts'
import { RecentMails } from './recent-mails.ts'
import { createTransport, defaultTimes, type MailTimes } from './transport.ts'
import { createHash } from 'node:crypto'

export interface MailerOptions {
  /** `smtp://user:password@host:587`, or `smtps://` for TLS from the first byte. */
  readonly smtpUrl: string
  /** `sidecar@example.com` or `Sidecar <sidecar@example.com>`. */
  readonly from: string
  readonly log: Logger
  readonly events: Events
  readonly clock: Pick<Clock, 'now'>
  readonly times?: Partial<MailTimes>
}

export interface Mailer extends MailBinding {
  readonly counts: MailCounts
  readonly recent: RecentMails
  /** Host and port of the mail server. */
  readonly server: string
  /** Closes every connection. Messages in transfer fail; resolves after that. */
  close(): Promise<void>
}

/** @throws ConfigError if `from` is no address */
export function createMailer({ smtpUrl, from, log, events, clock, times }: MailerOptions): Mailer {
  const sender = parseSender(from)
  if (!sender) throw new ConfigError([`SIDECAR_MAIL_FROM: expected an address, got "${from}"`])
  const domain = domainToASCII(domainOf(sender.address)) || 'localhost'
  const transport = createTransport(smtpUrl, { ...defaultTimes, ...times })
  const underWay = new Set<Promise<string>>()
  const counts = noMails()
  const recent = new RecentMails(clock)

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
    recent,
    server: new URL(smtpUrl).host,
    forEntry({ document, key, done: before, signal }) {
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
            const failure = countFailure(counts, thrown)
            if (failure) recent.add({ ...document, to: message.to, failure })
            throw thrown
          }
          recent.add({ ...document, to: message.to })
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

/** The Message-ID of the message with this number (from 1) in an entry. */
function messageIdOf(key: string, number: number, domain: string): string {
  const hash = createHash('sha256').update(`${number}\n${key}`).digest('hex').slice(0, 40)
  return `<${hash}@${domain}>`
}

type Untrusted<T> = { readonly [Field in keyof T]?: unknown }

/**
 * Refuses messages that no server should get. The values come from documents, so they may have any type, in spite of
 * the declared ones.
 *
 * @throws Reject `bad_address`, `bad_header` or `bad_message`
 */
function checkMessage({ to, subject, text, html }: Untrusted<Message>): void {
  if (typeof to !== 'string' || !isAddress(to)) {
    throw new Reject('bad_address', 'expected one plain email address as recipient')
  }
  if (typeof subject !== 'string' || /[\p{Cc}\u2028\u2029]/u.test(subject)) {
    throw new Reject('bad_header', 'expected a subject of one line, without control characters')
  }
  if (typeof text !== 'string' || (html !== undefined && typeof html !== 'string')) {
    throw new Reject('bad_message', 'expected the text of the message, and its HTML if any, as strings')
  }
}
