import { counter, defineGroup, gauge, one } from '../metric.ts'

const BYTE_BUDGET = 'core/byte-budget.ts'
const READERS = 'events/channel-feed.ts'
const MAILS = 'mail/mailer.ts'

export const ofSidecar = defineGroup({
  title: 'The sidecar',
  metrics: {
    build_info: gauge('none', 'Always 1; what runs is in its labels.', 'cli/start.ts', {
      version: 'of the sidecar',
      node: 'of Node',
    }),
    workers: gauge(
      'workers',
      'Sidecars that share the control database; no number while that is unknown.',
      'workers/role.ts',
    ),
    memory_used_bytes: gauge('bytes', 'Memory that documents in flight take.', BYTE_BUDGET),
    memory_limit_bytes: gauge('bytes', 'Memory that documents in flight may take.', BYTE_BUDGET),
    mails_sent_total: counter('mails', 'Mails that the mail server has taken.', MAILS),
    mails_failed_total: counter('tries', 'Mails that could not be handed over, or never can; each try counts.', MAILS, {
      code: 'of what went wrong',
    }),
    event_readers: gauge('readers', 'Readers of event channels over HTTP.', READERS),
    event_readers_dropped_total: counter(
      'readers',
      'Readers of event channels that were cut off because they were slow.',
      READERS,
    ),
  },
  read({ version, workers, byteBudget: byteBudget, mails, readers }) {
    return {
      build_info: [[1, { version, node: process.versions.node }]],
      workers: one(workers()),
      memory_used_bytes: one(byteBudget.used),
      memory_limit_bytes: one(byteBudget.budget),
      mails_sent_total: one(mails.sent),
      mails_failed_total: Object.entries(mails.failed).map(([code, count]) => [count, { code }] as const),
      event_readers: one(readers.open),
      event_readers_dropped_total: one(readers.dropped),
    }
  },
})
