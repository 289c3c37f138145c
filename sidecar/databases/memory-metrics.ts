import type { ByteBudget } from '../core/byte-budget.ts'
import { defineMetrics, gauge, one } from '../metrics/metric.ts'

const BYTE_BUDGET = 'core/byte-budget.ts'

export const memoryMetrics = defineMetrics({
  title: 'Memory',
  prefix: 'couchdb_sidecar_memory_',
  metrics: {
    used_bytes: gauge('bytes', 'Memory that documents in flight take.', BYTE_BUDGET),
    limit_bytes: gauge('bytes', 'Memory that documents in flight may take.', BYTE_BUDGET),
  },
  read: ({ used, budget }: ByteBudget) => ({ used_bytes: one(used), limit_bytes: one(budget) }),
})
