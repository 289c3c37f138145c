/** Generates `examples/monitoring/grafana-dashboard.json` from this table. Run `npm run docs:dashboard`. */

interface Query {
  readonly expr: string
  /** Label of the line. */
  readonly legend: string
}

interface Panel {
  readonly title: string
  /** Tooltip: the question that the panel answers. */
  readonly description: string
  readonly unit: 'short' | 's' | 'ops' | 'bytes' | 'percentunit'
  readonly queries: readonly Query[]
  /** Shows one number, good at 0, instead of a graph. */
  readonly isNumber?: true
}

const HERE = '{database=~"$database"}'
const max = (expr: string, ...by: string[]) => `max by (${by.join(', ')}) (${expr})`
const sum = (expr: string, ...by: string[]) => `sum by (${by.join(', ')}) (${expr})`
const documents = (status: string) => `couchdb_sidecar_documents{database=~"$database", status=~"${status}"}`
const latency = (quantile: number, of = 'duration') =>
  `histogram_quantile(${quantile}, ${sum(`rate(couchdb_sidecar_handler_${of}_seconds_bucket${HERE}[$__rate_interval])`, 'le', 'type', 'state')})`

/** One entry per row of the dashboard: health, documents, feeds, processes. */
export const ROWS: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    'Is all well?',
    [
      {
        ...{ title: 'Failed', unit: 'short', isNumber: true },
        description: 'Documents in error. Run couchdb-sidecar status --stuck for the reasons.',
        queries: [{ expr: `sum(${max(documents('failed'), 'database', 'type', 'state')})`, legend: 'failed' }],
      },
      {
        ...{ title: 'Parked', unit: 'short', isNumber: true },
        description: 'Documents for which an operator must decide whether the handler took effect.',
        queries: [{ expr: `sum(${max(documents('parked'), 'database', 'type', 'state')})`, legend: 'parked' }],
      },
      {
        ...{ title: 'Waiting for a retry', unit: 'short', isNumber: true },
        description: 'Documents whose last attempt failed and that wait for the next attempt.',
        queries: [{ expr: `sum(${max(documents('retry'), 'database', 'type', 'state')})`, legend: 'retry' }],
      },
      {
        ...{ title: 'Feeds that are not read', unit: 'short', isNumber: true },
        description: 'GET /_up of a sidecar shows the reason.',
        queries: [
          {
            expr: `sum(couchdb_sidecar_databases${HERE} - couchdb_sidecar_databases_following${HERE})`,
            legend: 'feeds',
          },
        ],
      },
    ],
  ],
  [
    'Documents',
    [
      {
        ...{ title: 'Runs of handlers', unit: 'ops' },
        description: 'Runs that have ended, by handler and outcome.',
        queries: [
          {
            expr: sum(`rate(couchdb_sidecar_handler_runs_total${HERE}[$__rate_interval])`, 'type', 'state', 'outcome'),
            legend: '{{type}}/{{state}} {{outcome}}',
          },
        ],
      },
      {
        ...{ title: 'Waiting', unit: 'short' },
        description: 'Documents that no worker has started to handle.',
        queries: [
          {
            expr: max(documents('ready|timeout'), 'database', 'type', 'state', 'status'),
            legend: '{{database}} {{type}}/{{state}} {{status}}',
          },
        ],
      },
      {
        ...{ title: 'How long handlers run', unit: 's' },
        description: 'The median and the 99th percentile of the duration of runs.',
        queries: [
          { expr: latency(0.5), legend: '{{type}}/{{state}} median' },
          { expr: latency(0.99), legend: '{{type}}/{{state}} 99 %' },
        ],
      },
      {
        ...{ title: 'From read to start', unit: 's' },
        description: 'Time from the read of a document to the start of its handler.',
        queries: [
          { expr: latency(0.5, 'wait'), legend: '{{type}}/{{state}} median' },
          { expr: latency(0.99, 'wait'), legend: '{{type}}/{{state}} 99 %' },
        ],
      },
      {
        ...{ title: 'Oldest stuck document', unit: 's' },
        description: 'Time for which the oldest document has been failed, parked or waiting for a retry.',
        queries: [
          {
            expr: max(`couchdb_sidecar_documents_oldest_seconds${HERE}`, 'database', 'type', 'state', 'status'),
            legend: '{{database}} {{type}}/{{state}} {{status}}',
          },
        ],
      },
    ],
  ],
  [
    'Feeds, mails, indexes',
    [
      {
        ...{ title: 'Behind', unit: 's' },
        description: 'Time since a feed was last known to be at its end.',
        queries: [
          {
            expr: max(`couchdb_sidecar_feed_behind_seconds${HERE}`, 'instance', 'database'),
            legend: '{{database}} {{instance}}',
          },
        ],
      },
      {
        ...{ title: 'Changes read', unit: 'ops' },
        description: 'Changes read from feeds, by all workers.',
        queries: [
          {
            expr: sum(`rate(couchdb_sidecar_feed_changes_total${HERE}[$__rate_interval])`, 'database'),
            legend: '{{database}}',
          },
        ],
      },
      {
        ...{ title: 'Mails', unit: 'ops' },
        description: 'Mails that the mail server has accepted, and failed attempts by code.',
        queries: [
          { expr: 'sum(rate(couchdb_sidecar_mails_sent_total[$__rate_interval]))', legend: 'sent' },
          {
            expr: sum('rate(couchdb_sidecar_mails_failed_total[$__rate_interval])', 'code'),
            legend: 'failed: {{code}}',
          },
        ],
      },
      {
        ...{ title: 'Indexes', unit: 'short' },
        description: 'Indexes that lack changes of their database, and indexes whose last build failed.',
        queries: [
          { expr: 'max(couchdb_sidecar_indexes_behind)', legend: 'behind' },
          { expr: 'max(couchdb_sidecar_indexes_failing)', legend: 'failing' },
        ],
      },
    ],
  ],
  [
    'Sidecars',
    [
      {
        ...{ title: 'Sidecars', unit: 'short' },
        description: 'Sidecars that share the control database, as each sidecar counts them.',
        queries: [{ expr: 'couchdb_sidecar_workers', legend: '{{instance}}' }],
      },
      {
        ...{ title: 'Processor', unit: 'percentunit' },
        description: 'CPU use of each sidecar. Near 100 %, add another sidecar.',
        queries: [
          {
            expr: 'rate(process_cpu_seconds_total[$__rate_interval]) and on (instance) couchdb_sidecar_build_info',
            legend: '{{instance}}',
          },
        ],
      },
      {
        ...{ title: 'Memory', unit: 'bytes' },
        description: 'Memory of the process, and of the documents in flight.',
        queries: [
          {
            expr: 'process_resident_memory_bytes and on (instance) couchdb_sidecar_build_info',
            legend: '{{instance}} in all',
          },
          { expr: 'couchdb_sidecar_memory_used_bytes', legend: '{{instance}} documents' },
        ],
      },
      {
        ...{ title: 'Claims', unit: 'ops' },
        description: 'Claims of documents for unsafe handlers, by outcome.',
        queries: [
          {
            expr: sum(`rate(couchdb_sidecar_claims_total${HERE}[$__rate_interval])`, 'outcome'),
            legend: '{{outcome}}',
          },
        ],
      },
    ],
  ],
]

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' }
/** Units of Grafana's grid. */
const [COLUMNS, NUMBER_HEIGHT, GRAPH_HEIGHT] = [24, 4, 8]

export function renderDashboard(): string {
  const panels: object[] = []
  let y = 0
  for (const [title, row] of ROWS) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
    })
    y += 1
    const h = row[0]!.isNumber ? NUMBER_HEIGHT : GRAPH_HEIGHT
    const left = (at: number) => Math.round((COLUMNS * at) / row.length) // Grafana takes whole units only
    for (const [at, panel] of row.entries()) {
      const gridPos = { x: left(at), y, w: left(at + 1) - left(at), h }
      panels.push({ id: panels.length + 1, gridPos, ...panelOf(panel) })
    }
    y += h
  }
  const dashboard = {
    ...{ uid: 'couchdb-sidecar', title: 'couchdb-sidecar', tags: ['couchdb'], schemaVersion: 39, version: 1 },
    ...{ editable: true, timezone: 'browser', refresh: '30s', time: { from: 'now-6h', to: 'now' } },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Prometheus' },
        {
          ...{ name: 'database', type: 'query', label: 'Database', datasource: DATASOURCE, refresh: 2 },
          ...{ query: 'label_values(couchdb_sidecar_databases, database)', includeAll: true, multi: true },
          ...{ allValue: '.*', current: { text: 'All', value: '$__all' } },
        },
      ],
    },
    panels,
  }
  return `${JSON.stringify(dashboard, null, 2)}\n`
}

function panelOf({ title, description, unit, queries, isNumber }: Panel) {
  const steps = [
    { color: 'green', value: null },
    { color: 'red', value: 1 },
  ]
  return {
    ...{ type: isNumber ? 'stat' : 'timeseries', title, description, datasource: DATASOURCE },
    fieldConfig: {
      defaults: { unit, min: 0, ...(isNumber && { thresholds: { mode: 'absolute', steps } }) },
      overrides: [],
    },
    ...(isNumber && { options: { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'background' } }),
    targets: queries.map(({ expr, legend }, at) => ({
      ...{ refId: String.fromCharCode(65 + at), expr, legendFormat: legend, datasource: DATASOURCE },
    })),
  }
}
