import { counter, defineMetrics, one } from '../metrics/metric.ts'
import type { MailCounts } from './counts.ts'

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
