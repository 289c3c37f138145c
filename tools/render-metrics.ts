import type { Metric, MetricGroup } from '../sidecar/metrics/metric.ts'
import { GROUPS } from './metric-groups.ts'

const listed = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels)
    .map(([name, values]) => `\`${name}\`: ${values}`)
    .join('; ')

const rowOf = (prefix: string, [name, { type, unit, meaning, from, labels }]: [string, Metric]) =>
  `| \`${prefix}${name}\` | ${type}, ${unit} | ${meaning} | ${listed(labels)} | ${from} |`

const tableOf = ({ title, prefix, labels, metrics }: MetricGroup) =>
  [
    `## ${title}\n`,
    ...(Object.keys(labels).length > 0 ? [`Labels of each metric in this table: ${listed(labels)}.\n`] : []),
    '| metric | type, unit | meaning | more labels | source |',
    '| --- | --- | --- | --- | --- |',
    ...Object.entries(metrics).map((entry) => rowOf(prefix, entry)),
  ].join('\n')

/** Renders every metric as Markdown, with a table for each group. */
export const renderMetrics = (): string => GROUPS.map(tableOf).join('\n\n')
