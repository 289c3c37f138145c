import { counter, defineMetrics, one } from '../metrics/metric.ts'
import { withoutOthers, type MailFailure } from './failure.ts'

const MAILER = 'mail/mailer.ts'

export const mailMetrics = defineMetrics({
  title: 'Mails',
  prefix: 'couchdb_sidecar_mails_',
  metrics: {
    sent_total: counter('mails', 'Mails that the mail server has accepted.', MAILER),
    failed_total: counter('attempts', 'Failed attempts to send a mail, by code.', MAILER, {
      code: 'mail_unreachable, mail_deferred, mail_login, mail_unanswered, mail_closed, mail_refused, bad_address, bad_header, bad_message ([meanings](error-handling.md#mail))',
    }),
  },
  read: ({ sent, failed }: MailCounts) => ({
    sent_total: one(sent),
    failed_total: Object.entries(failed).map(([code, count]) => [count, { code }] as const),
  }),
})

/** Counters of mails. */
export interface MailCounts {
  /** Mails that the mail server has accepted. */
  sent: number
  /** Failed attempts, by code. */
  readonly failed: Record<MailFailure, number>
}

export const noMails = (): MailCounts => ({
  sent: 0,
  failed: {
    ...{ mail_unreachable: 0, mail_deferred: 0, mail_login: 0, mail_unanswered: 0, mail_closed: 0 },
    ...{ mail_refused: 0, bad_address: 0, bad_header: 0, bad_message: 0 },
  },
})

/** Counts a failed attempt, and returns its code and reason. Undefined if the attempt was stopped from outside. */
export function countFailure(
  { failed }: MailCounts,
  thrown: unknown,
): { readonly code: MailFailure; readonly reason: string } | undefined {
  const { code, message = '' } = Object(thrown) as { readonly code?: MailFailure; readonly message?: string }
  if (code === undefined || !Object.hasOwn(failed, code)) return undefined
  failed[code] += 1
  return { code, reason: withoutOthers(message, '') }
}
