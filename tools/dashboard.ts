/** The dashboard for Grafana, `examples/monitoring/grafana-dashboard.json`: made from this table by `npm run docs:dashboard`. */

interface Query {
  readonly expr: string
  /** Of a line. */
  readonly legend: string
}

interface Panel {
  readonly title: string
  /** What it answers, for who rests on it. */
  readonly description: string
  readonly unit: 'short' | 's' | 'ops' | 'bytes' | 'percentunit'
  readonly queries: readonly Query[]
  /** One number that is good at 0, and not a graph. */
  readonly isNumber?: true
}

const HERE = '{database=~"$database"}'
const max = (expr: string, ...by: string[]) => `max by (${by.join(', ')}) (${expr})`
const sum = (expr: string, ...by: string[]) => `sum by (${by.join(', ')}) (${expr})`
const documents = (status: string) => `couchdb_sidecar_documents{database=~"$database", status=~"${status}"}`
const latency = (quantile: number) =>
  `histogram_quantile(${quantile}, ${sum(`rate(couchdb_sidecar_handler_duration_seconds_bucket${HERE}[$__rate_interval])`, 'le', 'type', 'state')})`

/** A row each: how it is, what documents do, what the process does. */
export const ROWS: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    'Is all well?',
    [
      {
        ...{ title: 'Failed', unit: 'short', isNumber: true },
        description: 'Documents in error. couchdb-sidecar status --stuck tells why.',
        queries: [{ expr: `sum(${max(documents('failed'), 'database', 'type', 'state')})`, legend: 'failed' }],
      },
      {
        ...{ title: 'Parked', unit: 'short', isNumber: true },
        description: 'Documents of which a person has to decide whether their effect happened.',
        queries: [{ expr: `sum(${max(documents('parked'), 'database', 'type', 'state')})`, legend: 'parked' }],
      },
      {
        ...{ title: 'Tried again', unit: 'short', isNumber: true },
        description: 'Documents whose last try failed, and that wait for the next.',
        queries: [{ expr: `sum(${max(documents('retry'), 'database', 'type', 'state')})`, legend: 'retry' }],
      },
      {
        ...{ title: 'Feeds that are not read', unit: 'short', isNumber: true },
        description: 'GET /_up of a sidecar tells why.',
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
        description: 'Documents that no worker has begun with.',
        queries: [
          {
            expr: max(documents('ready|timeout'), 'database', 'type', 'state', 'status'),
            legend: '{{database}} {{type}}/{{state}} {{status}}',
          },
        ],
      },
      {
        ...{ title: 'How long handlers run', unit: 's' },
        description: 'The median, and what 99 of 100 take at most.',
        queries: [
          { expr: latency(0.5), legend: '{{type}}/{{state}} median' },
          { expr: latency(0.99), legend: '{{type}}/{{state}} 99 %' },
        ],
      },
      {
        ...{ title: 'The oldest that is stuck', unit: 's' },
        description: 'For how long the oldest document has been failed, parked or tried again.',
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
        description: 'For how long a feed has not been at its end.',
        queries: [
          {
            expr: max(`couchdb_sidecar_feed_behind_seconds${HERE}`, 'instance', 'database'),
            legend: '{{database}} {{instance}}',
          },
        ],
      },
      {
        ...{ title: 'Changes read', unit: 'ops' },
        description: 'Rows of feeds, on all workers.',
        queries: [
          {
            expr: sum(`rate(couchdb_sidecar_feed_changes_total${HERE}[$__rate_interval])`, 'database'),
            legend: '{{database}}',
          },
        ],
      },
      {
        ...{ title: 'Mails', unit: 'ops' },
        description: 'Mails that the mail server has taken, and tries that failed by their code.',
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
        description: 'Indexes that are behind their documents, and that cannot be built.',
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
        description: 'That share the control database, as each of them sees it.',
        queries: [{ expr: 'couchdb_sidecar_workers', legend: '{{instance}}' }],
      },
      {
        ...{ title: 'Processor', unit: 'percentunit' },
        description: 'Near 100 % another sidecar helps.',
        queries: [
          {
            expr: 'rate(process_cpu_seconds_total[$__rate_interval]) and on (instance) couchdb_sidecar_build_info',
            legend: '{{instance}}',
          },
        ],
      },
      {
        ...{ title: 'Memory', unit: 'bytes' },
        description: 'Of the process, and of the documents that it holds.',
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
        description: 'Of unsafe documents: won, or lost to another worker.',
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
/** Grafana's grid. */
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
    const [w, h] = [COLUMNS / row.length, row[0]!.isNumber ? NUMBER_HEIGHT : GRAPH_HEIGHT]
    for (const [at, panel] of row.entries())
      panels.push({ id: panels.length + 1, gridPos: { x: at * w, y, w, h }, ...panelOf(panel) })
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
