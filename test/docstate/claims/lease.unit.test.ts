import pino from 'pino'
import { expect, test } from 'vitest'
import { Lease } from '../../../sidecar/docstate/claims/lease.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const MINUTE_MS = 60_000

function setUp(leaseMs = 30_000) {
  const clock = createManualClock()
  const warnings: unknown[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(JSON.parse(line)) })
  const lease = new Lease({ leaseMs, clock, log })
  /** A request that is answered after `ms`, or without an answer in time. */
  async function request(ms = Infinity): Promise<void> {
    const over = lease.sent()
    await clock.advance(Math.min(ms, lease.timeoutMs))
    over()
  }
  return { lease, clock, warnings, request }
}

test('quick answers leave the lease as configured', async () => {
  const { lease, request, warnings } = setUp()
  for (const ms of [0, 5, 5000]) await request(ms)
  expect(lease).toMatchObject({ ms: 30_000, configuredMs: 30_000, timeoutMs: 15_000 })
  expect(warnings).toEqual([])
})

test('a lease lasts six of the slowest answers', async () => {
  const { lease, request } = setUp()
  await request(10_000)
  await request(9000)
  expect(lease.ms).toBe(60_000)
})

test('requests without an answer lengthen the lease to four minutes, and their timeout to one minute', async () => {
  const { lease, request } = setUp()
  const seen: [leaseMs: number, timeoutMs: number][] = []
  for (let i = 0; i < 8; i++) {
    await request()
    const last = [lease.ms, lease.timeoutMs] as [number, number]
    if (String(last) !== String(seen.at(-1))) seen.push(last)
  }
  expect(seen).toEqual([
    [90_000, 15_000],
    [90_000, 45_000],
    [240_000, 45_000],
    [240_000, 60_000],
  ])
})

test('no request waits longer than half the lease of a claim that was written before', async () => {
  const { lease, clock, request } = setUp()
  const writtenAt = clock.ticks()
  await request() // and the claim waits
  for (; clock.ticks() < writtenAt + 30_000; await clock.advance(1000)) expect(lease.timeoutMs).toBe(15_000)
  await clock.advance(15_000)
  expect(lease.timeoutMs).toBe(45_000)
})

test('a configured lease of more than four minutes stays', async () => {
  const { lease, request } = setUp(10 * MINUTE_MS)
  await request()
  expect(lease).toMatchObject({ ms: 10 * MINUTE_MS, timeoutMs: 5 * MINUTE_MS })
})

test('the lease is as configured again after ten to twenty configured leases without slow answers', async () => {
  const { lease, clock, request } = setUp()
  await request(12_000)
  const quickFor = async (ms: number) => {
    for (let i = 0; i < 10; i++) {
      await clock.advance(ms / 10)
      await request(5)
    }
  }
  await quickFor(5 * MINUTE_MS)
  expect(lease.ms).toBe(72_000)
  await quickFor(6 * MINUTE_MS)
  expect(lease.ms).toBe(30_000)
})

test('a slow answer of long ago does not count', async () => {
  const { lease, clock, request } = setUp()
  await request(12_000)
  await clock.advance(11 * MINUTE_MS)
  expect(lease.ms).toBe(30_000)
})

test('answers that stay slow keep the lease long', async () => {
  const { lease, clock, request } = setUp()
  await request(15_000)
  await clock.advance(30_000)
  for (let i = 0; i < 100; i++) {
    await request(18_000)
    await request(5)
    expect(lease.ms).toBe(108_000)
  }
})

test('a pause of the process during a request counts as its timeout', async () => {
  const { lease, clock } = setUp()
  const over = lease.sent()
  await clock.advance(10 * MINUTE_MS)
  over()
  expect(lease.ms).toBe(90_000)
})

test('a short lease grows until answers that take 25 s arrive in time', async () => {
  const { lease, request } = setUp(1000)
  let tries = 0
  while (lease.timeoutMs < 25_000) {
    await request(25_000)
    expect(++tries).toBeLessThan(100)
  }
  for (let i = 0; i < 20; i++) {
    await request(25_000)
    expect(lease.timeoutMs).toBeGreaterThan(25_000)
  }
})

test('a warning says once that CouchDB has become slow', async () => {
  const { clock, request, warnings } = setUp()
  const slow = { tookMs: 10_000, leaseMs: 60_000 }
  await request(10_000)
  await request(12_000)
  expect(warnings).toEqual([expect.objectContaining(slow)])
  for (let i = 0; i < 3; i++) {
    await clock.advance(6 * MINUTE_MS)
    await request(5)
  }
  await request(10_000)
  expect(warnings).toEqual([expect.objectContaining(slow), expect.objectContaining(slow)])
})
