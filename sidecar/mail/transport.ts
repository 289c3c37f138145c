/**
 * A pool of SMTP connections that sends a message at most once.
 *
 * nodemailer's own pool sends a message again when its connection closes (`maxRequeues`). After a lost answer that
 * would be a second mail. This pool never does so: the caller decides about another try.
 *
 * nodemailer's own signal cuts the connection in the middle of a message. Here a signal only ends the wait for a
 * connection. A message in transfer continues to its answer, so that an acceptance is seen.
 */
import { onAbort } from '../core/on-abort.ts'
import { createTransport as createNodemailer, type SendMailOptions } from 'nodemailer'
import { parseConnectionUrl } from 'nodemailer/lib/shared'
import { failureFrom, MailError, type DeliveryError } from './failure.ts'

/** Timeouts of a delivery, milliseconds. */
export interface MailTimes {
  /** From the first packet to the greeting and TLS. Default 20 s. */
  readonly connectMs: number
  /** Maximum silence of the server. Default 60 s: filters check a message before the server accepts it. */
  readonly silenceMs: number
  /** For one message in total, including the wait for a connection. Default 90 s. */
  readonly totalMs: number
  /** An idle connection closes after this time. Default 10 s. */
  readonly idleMs: number
}

export const defaultTimes: MailTimes = { connectMs: 20_000, silenceMs: 60_000, totalMs: 90_000, idleMs: 10_000 }

export interface OutgoingMessage extends SendMailOptions {
  readonly to: { readonly name: string; readonly address: string }
}

export interface Transport {
  /** Resolves with the server's answer when it has accepted the message. Throws `MailError` or `Reject`. */
  deliver(message: OutgoingMessage, signal: AbortSignal): Promise<string>
  /** Closes every connection; messages in transfer fail. */
  close(): void
}

const MAX_CONNECTIONS = 4

export function createTransport(smtpUrl: string, times: MailTimes): Transport {
  const pool = createNodemailer({
    // First, so that no option in the URL (`?maxRequeues=3`) overrides the options below.
    ...parseConnectionUrl(smtpUrl),
    pool: true,
    maxConnections: MAX_CONNECTIONS,
    maxRequeues: 0,
    connectionTimeout: times.connectMs,
    greetingTimeout: times.connectMs,
    dnsTimeout: times.connectMs,
    socketTimeout: times.silenceMs,
    idleTimeout: times.idleMs,
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
    // nodemailer's log would hold the messages, with the links in them.
    logger: false,
  })
  const handOver = new WeakMap<AbortSignal, () => void>()
  pool.use('stream', (mail, next) => {
    // Runs when a connection is ready and nodemailer sends the envelope.
    mail.message.processFunc((input) => {
      if (mail.data.signal) handOver.get(mail.data.signal)?.()
      return input
    })
    next()
  })
  let closed = false

  return {
    async deliver(message, signal) {
      signal.throwIfAborted()
      let handedOver = false
      const cut = new AbortController()
      const stopListening = onAbort(signal, () => cut.abort(signal.reason))
      const timer = setTimeout(() => cut.abort(new Error(`not done within ${times.totalMs} ms`)), times.totalMs)
      handOver.set(cut.signal, () => {
        handedOver = true
        stopListening()
      })
      try {
        const { response } = await pool.sendMail({ ...message, signal: cut.signal })
        return response
      } catch (thrown) {
        if (!handedOver) signal.throwIfAborted()
        if (closed && !handedOver) throw new MailError('mail_closed', 'the mailer is closed', { cause: thrown })
        throw failureFrom(thrown as DeliveryError, message.to.address, handedOver)
      } finally {
        clearTimeout(timer)
        stopListening()
      }
    },
    close() {
      closed = true
      pool.close({ force: true })
    },
  }
}
