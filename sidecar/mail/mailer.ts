/**
 * Sends mail for handlers. A message belongs to an entry of a document into a state and is known by its Message-ID,
 * made from the entry's key and the number of the message within it: the same on every try, so that one that was seen
 * to be accepted is not sent again, and one that was perhaps accepted can be recognised by a receiver that gets it twice.
 */
import { domainToASCII } from 'node:url'
import type { Logger } from 'pino'
import { ConfigError, Reject } from '../core/errors.ts'
import type { Events } from '../events/channels.ts'
import type { MailBinding, Message } from '../docstate/mail.ts'
import { domainOf, parseSender, wireAddress, isAddress } from './address.ts'
import { countFailure, noMails, type MailCounts } from './mail-metrics.ts'
import { MailError, withoutOthers, type DeliveryError } from './failure.ts'
import { createTransport, defaultTimes, type MailTimes } from './transport.ts'
import { createHash } from 'node:crypto'

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

/** The Message-ID of the message with this number (from 1) among those of an entry. */
function messageIdOf(key: string, number: number, domain: string): string {
  const hash = createHash('sha256').update(`${number}\n${key}`).digest('hex').slice(0, 40)
  return `<${hash}@${domain}>`
}

type Untrusted<T> = { readonly [Field in keyof T]?: unknown }

/**
 * Refuses what no server should be asked to take. The values come from documents, so they may be of any type, whatever
 * the handler was declared to give.
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
