import { databaseMetrics } from '../sidecar/databases/database-metrics.ts'
import { handlerMetrics } from '../sidecar/databases/database-metrics.ts'
import { memoryMetrics } from '../sidecar/databases/database-metrics.ts'
import { visitMetrics } from '../sidecar/databases/database-metrics.ts'
import { eventMetrics } from '../sidecar/events/events-feature.ts'
import { dbUpdatesMetrics } from '../sidecar/global-changes/writing/global-changes-metrics.ts'
import { globalChangesMetrics } from '../sidecar/global-changes/writing/global-changes-metrics.ts'
import { inboxMetrics } from '../sidecar/inbox/inbox-metrics.ts'
import { indexMetrics } from '../sidecar/indexes/index-metrics.ts'
import { mailMetrics } from '../sidecar/mail/mail-metrics.ts'
import { buildMetrics } from '../sidecar/metrics/process-metrics.ts'
import type { MetricGroup } from '../sidecar/metrics/metric.ts'
import { processMetrics } from '../sidecar/metrics/process-metrics.ts'
import { documentMetrics } from '../sidecar/operator-page/document-metrics.ts'
import { workerMetrics } from '../sidecar/workers/workers-feature.ts'

/** Every metric, in the order of docs/metrics.md. A test compares the list with the metrics that a sidecar serves. */
export const GROUPS: readonly MetricGroup[] = [
  ...[databaseMetrics, visitMetrics, handlerMetrics, documentMetrics, memoryMetrics, inboxMetrics, mailMetrics],
  ...[globalChangesMetrics, dbUpdatesMetrics, eventMetrics, indexMetrics, workerMetrics],
  ...[buildMetrics, processMetrics],
]
