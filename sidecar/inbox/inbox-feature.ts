import { createAccounts } from '../accounts/accounts.ts'
import { findHome } from '../accounts/accounts.ts'
import { hashingOf } from '../devices/passwords.ts'
import type { Feature } from '../feature.ts'
import { metricsOf } from '../metrics/metric.ts'
import type { Platform } from '../platform.ts'
import { noArrivals } from './inbox-metrics.ts'
import { inboxMetrics } from './inbox-metrics.ts'
import { inboxRoute } from './inbox-route.ts'
import { createInbox } from './inbox.ts'

/** `POST /inbox`: clients without credentials write to the control database. A rate of 0 closes the inbox. */
export function inboxFeature({ config, couch, embedded, syncUrl, clock, log }: Platform): Feature {
  const { proxies, inboxRate: perMinute, inboxWaiting: limit } = config
  const database = couch.answers.db(config.controlDb)
  const counts = noArrivals()
  const metrics = [metricsOf(inboxMetrics, counts)]
  if (perMinute === 0) return { metrics }
  const homeOf = findHome(createAccounts(database), syncUrl)
  const inbox = createInbox({ database, homeOf, limit, clock, counts, log })
  return {
    metrics,
    routes: [inboxRoute({ inbox, hashing: hashingOf(embedded), perMinute, limit, proxies, clock, counts })],
  }
}
