import { defineMetrics, gauge } from './metric.ts'

export const buildMetrics = defineMetrics({
  title: 'The sidecar',
  metrics: {
    build_info: gauge('none', 'Always 1; the labels say what runs.', 'cli/start.ts', {
      version: 'of the sidecar',
      node: 'of Node',
    }),
  },
  read: (version: string) => ({ build_info: [[1, { version, node: process.versions.node }] as const] }),
})
