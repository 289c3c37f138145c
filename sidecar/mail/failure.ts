/**
 * Decides what a failed delivery means for the document that requested it: one table over nodemailer's codes and the
 * server's reply codes. The text goes into a document that its owner's devices can read. So it holds the server's
 * answer only if the answer is about the message, and no address except the recipient's.
 */
import { Reject, SidecarError } from '../core/errors.ts'

export type MailErrorCode =
  | 'mail_unreachable' // no connection, no greeting, no TLS: the server never had the message
  | 'mail_deferred' // a 4xx answer
  | 'mail_login' // the server refuses the sidecar's own user: an operator must fix SMTP_URL
  | 'mail_unanswered' // cut off or silent after the transfer began: the server may or may not have the message
  | 'mail_closed' // the mailer was closed meanwhile

/** Why a mail was not sent: a `MailErrorCode`, or the code of a `Reject`. */
export type MailFailure = MailErrorCode | 'mail_refused' | 'bad_address' | 'bad_header' | 'bad_message'

/** A failure worth another try. Others are a `Reject`: `mail_refused`, `bad_address`, `bad_header`, `bad_message`. */
export class MailError extends SidecarError {
  override readonly name = 'MailError'
  declare readonly code: MailErrorCode

  constructor(code: MailErrorCode, message: string, options?: ErrorOptions) {
    super(code, message, options)
  }
}

/** An error of nodemailer: `code` names the step; `responseCode` and `response` are the server's, if it answered. */
export interface DeliveryError extends Error {
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
  /** True for a 5xx answer that will be the same next time. */
  readonly permanent?: boolean
}

/** Replies about the sidecar's login, not the message: "authentication required", "credentials invalid" and so on. */
const LOGIN_REPLIES: readonly (number | undefined)[] = [530, 534, 535, 538]

/** Steps of nodemailer at which the server answers to the message itself: MAIL, RCPT, DATA. */
const ABOUT_MESSAGE: readonly (string | undefined)[] = ['EENVELOPE', 'EMESSAGE']

export function failureFrom(error: DeliveryError, recipient: string, handedOver: boolean): MailError | Reject {
  const { code, responseCode, response, permanent } = error
  const cause = { cause: error }
  if (code === 'EAUTH' || LOGIN_REPLIES.includes(responseCode)) {
    return new MailError('mail_login', 'the mail server refuses the login of the sidecar', cause)
  }
  if (ABOUT_MESSAGE.includes(code)) {
    const said = withoutOthers(response ?? error.message, recipient)
    // Without an answer, nodemailer itself refused, by limits that the server announced.
    if (permanent ?? responseCode === undefined)
      return new Reject('mail_refused', `the mail server said: ${said}`, cause)
    return new MailError('mail_deferred', `the mail server said: ${said}`, cause)
  }
  if (handedOver) {
    return new MailError('mail_unanswered', 'the mail server received the message and did not answer', cause)
  }
  return new MailError('mail_unreachable', `the mail server cannot be reached (${code ?? error.name})`, cause)
}

/** True if the error proves that the server has not accepted the message: no mail of this try is under way. */
export const isSurelyUnsent = (thrown: unknown): boolean =>
  thrown instanceof Reject || (thrown instanceof MailError && thrown.code !== 'mail_unanswered')

const MAX_ANSWER = 300

/** The server's answer in one line, with every address masked except the recipient's. */
export const withoutOthers = (answer: string, recipient: string): string =>
  answer
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/[^\s<>"'(),;:]+@[^\s<>"'(),;:]+/g, (address) =>
      address.toLowerCase() === recipient.toLowerCase() ? address : '***',
    )
    .slice(0, MAX_ANSWER)
