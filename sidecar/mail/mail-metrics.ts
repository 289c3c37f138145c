import { counter, defineMetrics, one } from '../metrics/metric.ts'
import type { MailFailure } from './failure.ts'

const MAILER = 'mail/mailer.ts'

export const mailMetrics = defineMetrics({
  title: 'Mails',
  prefix: 'couchdb_sidecar_mails_',
  metrics: {
    sent_total: counter('mails', 'Mails that the mail server has accepted.', MAILER),
    failed_total: counter('tries', 'Attempts to send a mail that failed.', MAILER, { code: 'of what went wrong' }),
  },
  read: ({ sent, failed }: MailCounts) => ({
    sent_total: one(sent),
    failed_total: Object.entries(failed).map(([code, count]) => [count, { code }] as const),
  }),
})

/** Of mails, as plain numbers. */
export interface MailCounts {
  /** That the mail server has taken. */
  sent: number
  /** Tries that failed. */
  readonly failed: Record<MailFailure, number>
}

export const noMails = (): MailCounts => ({
  sent: 0,
  failed: {
    ...{ mail_unreachable: 0, mail_deferred: 0, mail_login: 0, mail_unanswered: 0, mail_closed: 0 },
    ...{ mail_refused: 0, bad_address: 0, bad_header: 0, bad_message: 0 },
  },
})

/** Not what has ended the try from outside, which says nothing of the mail. */
export function countFailure({ failed }: MailCounts, thrown: unknown): void {
  const code = (thrown as { readonly code?: MailFailure } | undefined)?.code
  if (code !== undefined && Object.hasOwn(failed, code)) failed[code] += 1
}
