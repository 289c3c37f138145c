/** The metrics of a running sidecar for Prometheus. */
import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { parseExposition, valueOf, type Families } from '../metrics/parse-exposition.ts'
import { GROUPS } from '../../tools/metric-groups.ts'
import { couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { newDevice, register, startWatching } from './registration.ts'

const { username, password } = new URL(couchUrl())
const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

const scrape = async (url: string) =>
  parseExposition(await (await fetch(`${url}/metrics`, { headers: { authorization } })).text(), 'prometheus')

/** The counters of an exposition, by name and labels. */
const countersIn = (families: Families) =>
  new Map(
    [...families.values()]
      .filter(({ type }) => type !== 'gauge')
      .flatMap(({ samples }) => samples.map(({ name, labels, value }) => [`${name} ${JSON.stringify(labels)}`, value])),
  )

test('the metrics count a registration, and no counter decreases', async () => {
  const registration = await startWatching()
  const { sidecar, control } = registration
  const own = (families: Families, name: string, labels = {}) => valueOf(families, `couchdb_sidecar_${name}`, labels)
  const database = control.name
  const first = await eventually(async () => {
    const families = await scrape(sidecar.url)
    expect(own(families, 'feed_behind_seconds', { database })).toBe(0)
    expect(own(families, 'workers')).toBe(1)
    expect(own(families, 'global_changes_db_writes_total')).toBeGreaterThan(0)
    return families
  })
  const documented = GROUPS.flatMap(({ prefix, metrics }) => Object.keys(metrics).map((name) => prefix + name))
  expect([...first.keys()].sort()).toEqual(documented.sort())
  expect(own(first, 'build_info', { version: packageJson.version })).toBe(1)
  expect(own(first, 'databases', { database })).toBe(1)
  expect(own(first, 'databases_following', { database })).toBe(1)
  const place = { database, type: 'device', state: 'new' }
  expect(own(first, 'handler_runs_total', { ...place, outcome: 'next' })).toBe(0)

  await register(registration, newDevice())
  const second = await eventually(async () => {
    const families = await scrape(sidecar.url)
    expect(own(families, 'documents_in_flight', { database })).toBe(0)
    expect(own(families, 'feed_unsettled_changes', { database })).toBe(0)
    return families
  })
  expect(own(second, 'handler_runs_total', { ...place, outcome: 'next' })).toBe(1)
  expect(own(second, 'handler_written_total', { ...place, as: 'saved' })).toBeGreaterThan(0)
  expect(own(second, 'handler_duration_seconds_count', place)).toBe(1)
  expect(own(second, 'handler_wait_seconds_count', place)).toBe(1)
  expect(own(second, 'handler_wait_seconds_sum', place)).toBeGreaterThan(0) // the claim takes a request
  expect(own(second, 'claims_total', { ...place, outcome: 'won' })).toBe(1)
  expect(own(second, 'mails_sent_total')).toBe(1)
  for (const more of ['feed_changes_total', 'write_requests_total']) {
    expect(own(second, more, { database })).toBeGreaterThan(own(first, more, { database }))
  }
  const later = countersIn(second)
  for (const [name, value] of countersIn(first)) expect(later.get(name), name).toBeGreaterThanOrEqual(value)
  expect(await sidecar.stop()).toBe(0)
})

test('a subscriber of events is counted while it is connected', async () => {
  const { sidecar } = await startWatching()
  const leaving = new AbortController()
  const headers = { authorization }
  const feed = await fetch(`${sidecar.url}/_events/mail:sent`, { headers, signal: leaving.signal })
  const readers = async () => valueOf(await scrape(sidecar.url), 'couchdb_sidecar_event_readers')
  expect(await readers()).toBe(1)
  expect(feed).toMatchObject({ status: 200, bodyUsed: false }) // a response that nothing refers to is closed
  leaving.abort()
  await eventually(async () => expect(await readers()).toBe(0))
  expect((await fetch(`${sidecar.url}/metrics`)).status).toBe(401)
})
