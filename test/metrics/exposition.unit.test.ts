import { createManualClock } from '../support/manual-clock.ts'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, expect, it, test } from 'vitest'
import { Counters } from '../../sidecar/docstate/counters.ts'
import { Entry } from '../../sidecar/indexes/entry.ts'
import { GROUPS } from '../../tools/metric-groups.ts'
import { expose, type Format } from '../../sidecar/metrics/metrics-route.ts'
import { parseExposition, valueOf } from './parse-exposition.ts'
import { engineSaying, metricsFrom, sourcesOf } from './sources.ts'

const FORMATS = ['prometheus', 'openmetrics'] as const
const catalogue = GROUPS.flatMap(({ prefix, labels, metrics }) =>
  Object.entries(metrics).map(([name, metric]) => ({
    ...metric,
    name: prefix + name,
    labels: Object.keys({ ...labels, ...metric.labels }).sort(),
  })),
)
const families = async (sources = sourcesOf(), format: Format = 'prometheus') =>
  parseExposition((await expose(metricsFrom(sources), format)).text, format)

/** Values for every source, so that every metric has a sample. */
function busy() {
  const counts = new Counters()
  counts.of({ type: 'order', state: 'paid' }).took.add(3)
  for (const [i, database] of ['a', 'b'].entries()) {
    counts.undeclared.set(database, [{ type: 'order', state: 'payed', count: i + 1 }])
  }
  const index = new Entry({ database: 'orders', ddoc: '_design/sales', kind: 'view', name: 'by_total', rev: '1-a' }, 0)
  index.read({ seq: 3, lag: 4, isRunning: false }, 1000)
  return sourcesOf({ databaseCounters: new Map([['control', counts]]), entries: [index], now: 60_000 })
}

test.each(FORMATS)('the exposition has exactly the metrics of the catalogue, as described: %s', async (format) => {
  const served = await families(busy(), format)
  expect([...served.keys()].sort()).toEqual(catalogue.map(({ name }) => name).sort())
  for (const { name, type, meaning, labels } of catalogue) {
    const { samples, ...family } = served.get(name)!
    expect(family, name).toEqual({ type, help: meaning })
    for (const { labels: received } of samples) {
      expect(
        Object.keys(received)
          .filter((label) => label !== 'le' || type !== 'histogram')
          .sort(),
        name,
      ).toEqual(labels)
    }
    if (!/_fds$/.test(name)) expect(samples.length, name).toBeGreaterThan(0)
  }
})

test('the databases of a glob share one sum of documents in undeclared states', async () => {
  const labels = { database: 'control', type: 'order', state: 'payed' }
  expect(valueOf(await families(busy()), 'couchdb_sidecar_documents_undeclared', labels)).toBe(3)
})

test('a group gives exactly the metrics that it describes', async () => {
  for (const { metrics, read } of metricsFrom(busy())) {
    expect(Object.keys(await read()).sort()).toEqual(Object.keys(metrics).sort())
  }
})

describe('the catalogue', () => {
  it('names the unit in each measured metric, as Prometheus recommends', () => {
    for (const { name, type, unit } of catalogue) {
      const measured = unit === 'seconds' || unit === 'bytes'
      if (measured) expect(name).toMatch(new RegExp(`_${unit}(_total)?$`))
      else expect(name).not.toMatch(/_(seconds|bytes)(_total)?$/)
      expect(name.endsWith('_total'), name).toBe(type === 'counter')
    }
  })

  it('states the source of each number', () => {
    for (const { name, from } of catalogue) {
      if (name.startsWith('couchdb_sidecar_')) {
        expect(existsSync(new URL(`../../sidecar/${from}`, import.meta.url)), `${name}: ${from}`).toBe(true)
      }
    }
  })

  it('has no label whose values grow with the documents', () => {
    for (const { name, labels } of catalogue) {
      expect(
        labels.every((label) => !['id', 'doc', 'document', 'worker', 'to', 'rev', 'key'].includes(label)),
        name,
      ).toBe(true)
    }
  })
})

test('the number of series matches docs/metrics.md', async () => {
  const page = await readFile(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const said = /(\d+) series for each name or glob, (\d+) for each handler in it, and (\d+)/
    .exec(page)!
    .slice(1)
    .map(Number)
  const count = async (patterns: number, handlers: number) => {
    const databaseCounters = new Map(Array.from({ length: patterns }, (_, n) => [`db${n}`, new Counters()]))
    for (const counts of databaseCounters.values())
      for (let n = 0; n < handlers; n++) counts.of({ type: 'order', state: `state ${n}` })
    const served = await families(sourcesOf({ databaseCounters }))
    return [...served.values()].reduce((sum, { samples }) => sum + samples.length, 0)
  }
  if (process.platform !== 'linux') said[2]! -= 2 // file descriptors
  const none = await count(0, 0)
  const one = await count(1, 0)
  expect([one - none, (await count(1, 1)) - one, none]).toEqual(said)
})

test('values change with the counters, alike in both formats, and reads do not affect each other', async () => {
  const counts = new Counters()
  const sources = sourcesOf({ databaseCounters: new Map([['control', counts]]) })
  const handler = counts.of({ type: 'order', state: 'paid' })
  for (const [runs, format] of [
    [1, 'prometheus'],
    [2, 'openmetrics'],
    [3, 'prometheus'],
    [4, 'openmetrics'],
  ] as const) {
    handler.runs.next += 1
    handler.took.add(runs * 20)
    const served = await families(sources, format)
    const labels = { database: 'control', type: 'order', state: 'paid' }
    expect(valueOf(served, 'couchdb_sidecar_handler_runs_total', { ...labels, outcome: 'next' })).toBe(runs)
    expect(valueOf(served, 'couchdb_sidecar_handler_duration_seconds_count', labels)).toBe(runs)
    expect(valueOf(served, 'couchdb_sidecar_handler_duration_seconds_bucket', { ...labels, le: '0.025' })).toBe(1)
  }
  const served = await families(sources)
  expect(valueOf(served, 'couchdb_sidecar_handler_duration_seconds_sum')).toBeCloseTo(0.02 + 0.04 + 0.06 + 0.08)
})

test('concurrent readers get the same values', async () => {
  const sources = busy()
  const own = async (format: Format) =>
    [...(await families(sources, format))].filter(([name]) => name.startsWith('couchdb_sidecar_'))
  const [first, ...others] = await Promise.all([...FORMATS, ...FORMATS].map(own))
  for (const other of others) expect(other).toEqual(first)
})

test('databases of one name or glob share one sum of counts and the longest lag', async () => {
  const [control, users] = [new Counters(), new Counters()]
  const engines = new Map([
    ['control', engineSaying(control, {}, { behindMs: 100 })],
    ['userdb-1', engineSaying(users, { inFlight: 2 }, { unread: 5, unsettled: 1, behindMs: 2500, slowHandlers: 1 })],
    ['userdb-2', engineSaying(users, { inFlight: 3, following: false }, { unread: 6, unsettled: 2, behindMs: 500 })],
  ])
  const databaseCounters = new Map([
    ['control', control],
    ['userdb-*', users],
    ['userdb-of "a\\b"', new Counters()],
  ])
  const served = await families(sourcesOf({ engines, databaseCounters }))
  const of = (database: string) => (name: string) => valueOf(served, `couchdb_sidecar_${name}`, { database })
  const gauges = [
    ...['databases', 'databases_following', 'documents_in_flight', 'feed_pending_changes', 'feed_unsettled_changes'],
    ...['feed_behind_seconds', 'handlers_behind'],
  ]
  expect(gauges.map(of('userdb-*'))).toEqual([2, 1, 5, 11, 3, 2.5, 1])
  expect(gauges.map(of('control'))).toEqual([1, 1, 0, 0, 0, 0.1, 0])
  expect(gauges.map(of('userdb-of "a\\b"')), 'a pattern without databases').toEqual([0, 0, 0, 0, 0, 0, 0])
})

test('every number of the parts appears under the metric name beside it', async () => {
  const { byteBudget } = sourcesOf()
  byteBudget.share().tryEnter(400)
  const mails = { ...sourcesOf().mails, sent: 7 }
  mails.failed.mail_login = 2
  const served = await families(
    sourcesOf({
      ...{ byteBudget, mails, readers: { open: 4, dropped: 3 }, workers: 2 },
      globalChanges: {
        ...{ on: false, written: 1, pendingWrites: 2, pendingEvents: 3, conflicts: 4, requests: 5, swept: 6 },
        ...{ lagMs: 7000, sweptMsAgo: 8000 },
      },
    }),
  )
  const own = (name: string, labels = {}) => valueOf(served, `couchdb_sidecar_${name}`, labels)
  expect(own('build_info', { version: '1.2.3', node: process.versions.node })).toBe(1)
  expect([own('memory_used_bytes'), own('memory_limit_bytes')]).toEqual([400, 1000])
  expect([own('mails_sent_total'), own('mails_failed_total', { code: 'mail_login' })]).toEqual([7, 2])
  expect([own('event_readers'), own('event_readers_dropped_total'), own('workers')]).toEqual([4, 3, 2])
  const changes = [
    ...['on', 'db_writes_total', 'server_pending_updates', 'listener_pending_updates', 'event_doc_conflict_total'],
    ...['rpcs_total', 'sweep_found_total', 'lag_seconds', 'sweep_age_seconds'],
  ]
  expect(changes.map((name) => own(`global_changes_${name}`))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
})

test('every counter of the engines appears under the metric name beside it', async () => {
  const counts = new Counters()
  Object.assign(counts, { changes: 1, contended: 4 })
  Object.assign(counts.feed, { broken: 2, rewound: 3 })
  Object.assign(counts.conflicts, { resolved: 5, stuck: 6 })
  Object.assign(counts.writes, { requests: 7, stored: 8, accepted: 9, conflict: 10, refused: 11, unknown: 12 })
  const handler = counts.of({ type: 'order', state: 'paid' })
  Object.assign(handler, { running: 2, inherited: 3 })
  for (let since = 0; since < 9; since++) handler.underWay.set({}, since * 1000)
  Object.assign(handler.claims, { stored: 1, lost: 2, accepted: 3, refused: 4 })
  Object.assign(handler.written, { saved: 1, retry: 2, error: 3, parked: 4 })
  const clock = createManualClock()
  await clock.advance(10_000)
  const paused = () => new Set(['order/paid'])
  const served = await families(sourcesOf({ databaseCounters: new Map([['control', counts]]), clock, paused }))
  const own = (name: string) => valueOf(served, `couchdb_sidecar_${name}`, { database: 'control' })
  const by = (name: string, label: string, values: string[]) =>
    values.map((value) => valueOf(served, `couchdb_sidecar_${name}`, { database: 'control', [label]: value }))

  const numbers = [
    ...['feed_changes_total', 'feed_failures_total', 'feed_restarts_total', 'documents_in_vain_total'],
    ...['conflicts_resolved_total', 'conflicts_stuck_total', 'write_requests_total'],
  ]
  expect(numbers.map(own)).toEqual([1, 2, 3, 4, 5, 6, 7])
  const outcomes = ['stored', 'accepted', 'conflict', 'refused', 'unknown']
  expect(by('write_documents_total', 'outcome', outcomes)).toEqual([8, 9, 10, 11, 12])
  expect(['handler_waiting', 'handler_running', 'claims_inherited_total'].map(own)).toEqual([7, 2, 3])
  expect(['handler_oldest_seconds', 'handler_paused'].map(own)).toEqual([10, 1])
  expect(by('claims_total', 'outcome', ['won', 'lost', 'unproven', 'refused'])).toEqual([1, 2, 3, 4])
  expect(by('handler_written_total', 'as', ['saved', 'retry', 'error', 'parked'])).toEqual([1, 2, 3, 4])
})

test('the number of workers has no sample until it is known', async () => {
  const served = await families(sourcesOf({ workers: undefined }))
  expect(served.get('couchdb_sidecar_workers')!.samples).toEqual([])
})

test('process metrics have the standard names and plausible values', async () => {
  const began = Date.now() / 1000 - process.uptime()
  const first = await families()
  expect(valueOf(first, 'process_start_time_seconds')).toBeCloseTo(began, -1)
  expect(valueOf(first, 'process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  expect(valueOf(first, 'process_cpu_seconds_total')).toBeCloseTo(
    valueOf(first, 'process_cpu_user_seconds_total') + valueOf(first, 'process_cpu_system_seconds_total'),
  )
  const before = process.cpuUsage()
  while (process.cpuUsage(before).user < 30_000);
  const second = await families()
  for (const name of ['process_cpu_seconds_total', 'nodejs_eventloop_active_seconds_total']) {
    expect(valueOf(second, name) - valueOf(first, name), name).toBeGreaterThan(0.02)
  }
  if (process.platform === 'linux') {
    expect(valueOf(first, 'process_open_fds')).toBeGreaterThan(2)
    expect(valueOf(first, 'process_max_fds')).toBeGreaterThan(valueOf(first, 'process_open_fds'))
  }
})

test('documents are counted by state over all databases of a glob, after the first complete count', async () => {
  const counts = new Counters()
  for (const state of ['paid', 'shipped']) counts.of({ type: 'order', state })
  const order = { type: 'order', state: 'paid' } as const
  const failed = { ...order, status: 'failed', code: 'gone' } as const
  const databases = [
    {
      name: 'shop-1',
      counted: {
        counts: [
          { ...order, status: 'ready', count: 5 },
          { type: 'order', state: 'error', status: 'failed', count: 3 },
          { type: 'order', state: 'undeclared', status: 'ready', count: 9 },
        ],
        stuck: [
          { ...failed, count: 2, since: '2026-01-01T00:10:00.000Z' },
          { ...failed, code: 'late', count: 1, since: '2026-01-01T00:20:00.000Z' },
        ],
      },
    },
    { name: 'shop-2', counted: { counts: [], stuck: [{ ...failed, count: 4, since: '2026-01-01T00:00:00.000Z' }] } },
    { name: 'shop-3', counted: undefined },
  ]
  const counted = { databases, total: 3, isWhole: true, isKnown: true, unread: [], trouble: undefined }
  const databaseCounters = new Map([['shop-*', counts]])
  const now = Date.parse('2026-01-01T01:00:00.000Z')
  const served = await families(sourcesOf({ databaseCounters, counted, now }))
  const received = served.get('couchdb_sidecar_documents')!.samples.filter(({ value }) => value > 0)
  expect(received.map(({ labels, value }) => [labels.database, labels.state, labels.status, value])).toEqual([
    ['shop-*', 'paid', 'ready', 5],
    ['shop-*', 'paid', 'failed', 7],
  ])
  const oldest = { state: 'paid', status: 'failed' }
  expect(valueOf(served, 'couchdb_sidecar_documents_oldest_seconds', oldest)).toBe(3600)
  expect(valueOf(served, 'couchdb_sidecar_documents_oldest_seconds', { ...oldest, status: 'parked' })).toBe(0)
  const none = await families(sourcesOf({ databaseCounters, counted: { ...counted, isKnown: false }, now }))
  expect(none.get('couchdb_sidecar_documents')!.samples).toEqual([])
})
