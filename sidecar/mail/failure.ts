/**
 * What a failed delivery means for the document that asked for it. One table of decisions over nodemailer's codes and
 * the server's reply codes. The text goes into a document that its owner's devices can read, so it holds the server's
 * answer only where that is about the message, and no address but the recipient's.
 */
import { Reject, SidecarError } from '../core/errors.ts'

export type MailErrorCode =
  | 'mail_unreachable' // no connection, no greeting, no TLS: it never had the message
  | 'mail_deferred' // a 4xx answer
  | 'mail_login' // it refuses the sidecar's own user: a person has to mend SMTP_URL
  | 'mail_unanswered' // cut off or silent after the message was handed over: it may have it or not
  | 'mail_closed' // the mailer was closed meanwhile

/** Why a mail was not sent: one of these, or the code of a `Reject`. */
export type MailFailure = MailErrorCode | 'mail_refused' | 'bad_address' | 'bad_header' | 'bad_message'

/** Worth another try. What is not is a `Reject`: `mail_refused`, `bad_address`, `bad_header`, `bad_message`. */
export class MailError extends SidecarError {
  override readonly name = 'MailError'
  declare readonly code: MailErrorCode

  constructor(code: MailErrorCode, message: string, options?: ErrorOptions) {
    super(code, message, options)
  }
}

/** As nodemailer throws: `code` names the step, `responseCode` and `response` are the server's, where it said something. */
export interface DeliveryError extends Error {
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
  /** True for a 5xx that will be the same next time. */
  readonly permanent?: boolean
}

/** Replies about who is sending, not about the message: "authentication required", "credentials invalid" and so on. */
const LOGIN_REPLIES: readonly (number | undefined)[] = [530, 534, 535, 538]

/** The steps of nodemailer at which the server answers to the message itself: MAIL, RCPT, DATA. */
const ABOUT_MESSAGE: readonly (string | undefined)[] = ['EENVELOPE', 'EMESSAGE']

export function failureFrom(error: DeliveryError, recipient: string, handedOver: boolean): MailError | Reject {
  const { code, responseCode, response, permanent } = error
  const cause = { cause: error }
  if (code === 'EAUTH' || LOGIN_REPLIES.includes(responseCode)) {
    return new MailError('mail_login', 'the mail server refuses the login of the sidecar', cause)
  }
  if (ABOUT_MESSAGE.includes(code)) {
    const said = withoutOthers(response ?? error.message, recipient)
    // Without an answer it is nodemailer that refused, by the limits the server announced.
    if (permanent ?? responseCode === undefined)
      return new Reject('mail_refused', `the mail server said: ${said}`, cause)
    return new MailError('mail_deferred', `the mail server said: ${said}`, cause)
  }
  if (handedOver) {
    return new MailError('mail_unanswered', 'the mail server had the message and did not answer', cause)
  }
  return new MailError('mail_unreachable', `the mail server cannot be reached (${code ?? error.name})`, cause)
}

/** True for what says that the server has not taken the message: no mail of this try is under way. */
export const isSurelyUnsent = (thrown: unknown): boolean =>
  thrown instanceof Reject || (thrown instanceof MailError && thrown.code !== 'mail_unanswered')

const MAX_ANSWER = 300

/** The server's answer in one line, with every address in it but the recipient's made unreadable. */
export const withoutOthers = (answer: string, recipient: string): string =>
  answer
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/[^\s<>"'(),;:]+@[^\s<>"'(),;:]+/g, (address) =>
      address.toLowerCase() === recipient.toLowerCase() ? address : '***',
    )
    .slice(0, MAX_ANSWER)
