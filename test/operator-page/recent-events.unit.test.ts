import pino from 'pino'
import { expect, test } from 'vitest'
import { createEvents } from '../../sidecar/events/channels.ts'
import { RecentEvents } from '../../sidecar/operator-page/recent-events.ts'
import { createManualClock } from '../support/manual-clock.ts'

const failed = {
  database: 'shop',
  id: 'o/1',
  type: 'order',
  state: 'paid',
  code: 'gone',
  reason: 'x',
  attempts: 1,
  retry_at: null,
}

test('the recent events are the last twenty while a page is open, and none otherwise', async () => {
  const [clock, stopping] = [createManualClock(), new AbortController()]
  const events = createEvents({ log: pino({ level: 'silent' }) })
  const recentEvents = new RecentEvents({ events, clock, signal: stopping.signal })
  expect(events.channel('document:failed')).toBeUndefined()
  expect(recentEvents.with([])).toEqual([])
  for (let n = 0; n < 30; n++) events.channel('document:failed')!.publish({ ...failed, code: `code-${n}` })
  events.channel('mail:failed')!.publish({ message_id: 'm', to: 'ann@example.com', code: 'mail_login', reason: 'no' })
  const seen = recentEvents.with([])
  expect(seen).toHaveLength(20)
  expect(seen.slice(0, 2).map(({ text, path }) => [text, path])).toEqual([
    ['A mail was not sent: mail_login: no', undefined],
    ['o/1 in shop failed for good: code-29: x', '/document?db=shop&id=o%2F1'],
  ])
  await clock.advance(59_000)
  expect(recentEvents.with([])).toHaveLength(20)
  await clock.advance(59_000)
  expect(events.channel('document:failed')).toBeDefined()
  await clock.advance(2000)
  expect(events.channel('document:failed')).toBeUndefined()
  expect(recentEvents.with([])).toEqual([])
  stopping.abort(new Error('the test is over'))
})

test('the recent events include those of other workers, and no other part of their reports', () => {
  const clock = createManualClock()
  const worker = () => {
    const events = createEvents({ log: pino({ level: 'silent' }) })
    return { events, recentEvents: new RecentEvents({ events, clock, signal: AbortSignal.timeout(1000) }) }
  }
  const [one, other] = [worker(), worker()]
  expect([one.recentEvents.toSend(), other.recentEvents.with([])]).toEqual([[], []])
  one.events.channel('worker:joined')!.publish({ role: 'sidecar', worker: 'c' })
  one.events.channel('document:failed')!.publish({ ...failed, reason: 'x'.repeat(500) })
  const received = (events: unknown) => [{ worker: 'a', data: { _id: '_local/a', events } }]
  const [event, ...rest] = other.recentEvents.with(received(one.recentEvents.toSend()))
  expect([event!.worker, event!.path, rest]).toEqual(['a', '/document?db=shop&id=o%2F1', []])
  expect(event!.text).toMatch(/^o\/1 in shop failed for good: gone: x{100,}$/)
  expect(event!.text.length).toBeLessThanOrEqual(200)
  const wrong = [{ ...event, path: 'javascript:alert(1)' }, { ...event, at: 'now' }, { ...event, text: 5 }, null]
  for (const one of wrong) expect(other.recentEvents.with(received([one]))).toEqual([])
  for (const all of [null, 'text', {}]) expect(other.recentEvents.with(received(all))).toEqual([])
})
