import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import { mailMetrics } from './mail-metrics.ts'
import type { Mailer } from './mailer.ts'

/** Metrics of the mails. Handlers send mails with the mailer, which the platform shares. */
export const mailFeature = ({ mailer }: { readonly mailer: Mailer }): Feature => ({
  metrics: [metricsOf(mailMetrics, mailer.counts)],
})
