import { defineMetrics, gauge, one } from '../metrics/metric.ts'

export const workerMetrics = defineMetrics({
  title: 'Workers',
  metrics: {
    workers: gauge(
      'workers',
      'Sidecars that share the control database; no number while that is unknown.',
      'workers/role.ts',
    ),
  },
  read: (count: () => number | undefined) => ({ workers: one(count()) }),
})
