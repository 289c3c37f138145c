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

test('what happens is listened to while someone looks, the last twenty, and not at all otherwise', async () => {
  const [clock, stopping] = [createManualClock(), new AbortController()]
  const events = createEvents({ log: pino({ level: 'silent' }) })
  const recentEvents = new RecentEvents({ events, clock, signal: stopping.signal })
  expect(events.channel('document:failed')).toBeUndefined()
  expect(recentEvents.look()).toEqual([])
  for (let n = 0; n < 30; n++) events.channel('document:failed')!.publish({ ...failed, code: `code-${n}` })
  events.channel('mail:failed')!.publish({ message_id: 'm', to: 'ann@example.com', code: 'mail_login', reason: 'no' })
  const seen = recentEvents.look()
  expect(seen).toHaveLength(20)
  expect(seen.slice(0, 2).map(({ text, path }) => [text, path])).toEqual([
    ['A mail was not taken: mail_login: no', undefined],
    ['o/1 in shop has failed for good: code-29: x', '/document?db=shop&id=o%2F1'],
  ])
  await clock.advance(59_000)
  expect(recentEvents.look()).toHaveLength(20)
  await clock.advance(59_000)
  expect(events.channel('document:failed')).toBeDefined()
  await clock.advance(2000)
  expect(events.channel('document:failed')).toBeUndefined()
  expect(recentEvents.look()).toEqual([])
  stopping.abort(new Error('the test is over'))
})
