import { expect, test } from 'vitest'
import { systemClock } from '../../../sidecar/core/clock.ts'
import type { CallOptions } from '../../../sidecar/couch/database.ts'
import { Semaphore } from '../../../sidecar/core/semaphore.ts'
import { CouchError } from '../../../sidecar/couch/couch-errors.ts'
import type { AdaptiveTimeout } from '../../../sidecar/couch/adaptive-timeout.ts'
import { createReadHeld } from '../../../sidecar/docstate/claims/read-held.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { createLatch } from '../rig.ts'

const timeout: AdaptiveTimeout = { timeoutMs: 1000, sent: () => () => undefined }
const times = { timeout, leaseMs: 30_000, clock: systemClock, random: Math.random }

test('certain claims are read first, and one database never takes all turns', async () => {
  const { signal } = new AbortController()
  const [turns, answer] = [new Semaphore(() => 6), createLatch()]
  const [silent, other] = [1, 2].map(() => createReadHeld({ turns, ...times, signal }))
  const requested: string[] = []
  const about = (what: string) => async () => {
    requested.push(what)
    await answer.opened
  }
  const waiting = [1, 2, 3, 4, 5].map((i) => silent!(about(`perhaps ${i}`)))
  waiting.push(silent!(about('held'), true))
  await new Promise(setImmediate)
  expect(requested).toEqual(['perhaps 1', 'perhaps 2', 'perhaps 3', 'perhaps 4'])
  expect(await other!(({ first, timeoutMs }) => Promise.resolve({ first, timeoutMs }))).toEqual({
    first: true,
    timeoutMs: 1000,
  })
  answer.open()
  await Promise.all(waiting)
  expect(requested.slice(4)).toEqual(['held', 'perhaps 5'])
})

test('an abort rejects waiting requests and releases their turns', async () => {
  const over = new AbortController()
  const turns = new Semaphore(() => 1)
  const ask = createReadHeld({ turns, ...times, signal: over.signal })
  await turns.enter()
  const waiting = [1, 2, 3, 4, 5].map(() =>
    ask(() => Promise.resolve('asked')).catch((thrown: Error) => thrown.message),
  )
  over.abort(new Error('it is over'))
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'it is over'))
  turns.leave()
  await turns.enter()
})

test('the time of each request is measured, also without an answer', async () => {
  const { signal } = new AbortController()
  const events: string[] = []
  const measuring: AdaptiveTimeout = {
    timeoutMs: 1000,
    sent() {
      events.push('sent')
      return () => void events.push('over')
    },
  }
  const ask = createReadHeld({ turns: new Semaphore(() => 1), ...times, timeout: measuring, signal })
  const question = async ({ onSent }: CallOptions, failure?: Error) => {
    onSent?.()
    events.push('asked')
    await Promise.resolve()
    if (failure) throw failure
  }
  await ask((options) => question(options))
  const refused = new Error('not to be repeated')
  await expect(ask((options) => question(options, refused))).rejects.toBe(refused)
  expect(events).toEqual(['sent', 'asked', 'over', 'sent', 'asked', 'over'])
})

test('a question is repeated at least each sixth of the lease, and each 15 s', async () => {
  for (const [leaseMs, everyMs] of [
    [30_000, 5000],
    [600_000, 15_000],
  ] as const) {
    const over = new AbortController()
    const clock = createManualClock()
    const askedAt: number[] = []
    const ask = createReadHeld({
      ...{ ...times, turns: new Semaphore(() => 1), leaseMs, clock, random: () => 0.9999, signal: over.signal },
    })
    const asking = ask(() => {
      askedAt.push(clock.ticks())
      return Promise.reject(new CouchError('unreachable', { request: 'GET /db/o' }))
    }).catch((thrown: Error) => thrown.message)
    await clock.advance(0) // the first request
    await clock.advance(120_000)
    const waits = askedAt.slice(1).map((at, i) => at - askedAt[i]!)
    expect(Math.max(...waits)).toBeGreaterThan(everyMs * 0.99)
    expect(Math.max(...waits)).toBeLessThanOrEqual(everyMs)
    over.abort(new Error('it is over'))
    expect(await asking).toBe('it is over')
  }
})
