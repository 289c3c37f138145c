import pino from 'pino'
import { expect, test } from 'vitest'
import { growingWait } from '../../sidecar/core/backoff.ts'
import { errored, failed } from '../../sidecar/docstate/outcome-documents.ts'
import { Attempt } from '../../sidecar/docstate/attempt.ts'
import { handlerDefaults } from '../../sidecar/docstate/handler-options.ts'
import { createOutcomeLog } from '../../sidecar/docstate/outcome-log.ts'
import type { HandlerOptions, Registration } from '../../sidecar/docstate/types.ts'
import { createManualClock } from '../support/manual-clock.ts'

const away = { kind: 'failed', failure: { code: 'ECONNREFUSED', reason: 'no mail server' }, stack: undefined } as const
const DAY_MS = 24 * 3_600_000

function setUp(options: HandlerOptions = {}) {
  const clock = createManualClock()
  const lines: { level: number; msg: string; documents?: number; retry?: string }[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line) as never) })
  const ending = new AbortController()
  const report = createOutcomeLog({ database: 'shop', clock, log, signal: ending.signal })
  const handler = { type: 'order', state: 'paid', mode: 'unsafe', options: { ...handlerDefaults, ...options } }
  const attemptOf = (_id: string) =>
    new Attempt(handler as unknown as Registration, { _id, _rev: '1-a', type: 'order', state: 'paid' }, 'token')
  /** Records one more failed attempt, as the engine does. */
  function fail(attempt: Attempt): void {
    attempt.doc = failed(attempt, away.failure, clock.now(), Math.random)
    report(attempt, away)
    attempt.before = attempt.doc.docstate as typeof attempt.before
  }
  return { clock, lines, report, attemptOf, fail, ending }
}

test('the default retries last longer than a one-day outage', async () => {
  const { clock, lines, attemptOf, fail } = setUp()
  const attempt = attemptOf('o')
  const began = clock.now()
  for (let tries = 1; tries <= 20; tries++) {
    fail(attempt)
    const next = (attempt.before as { retry_at?: string }).retry_at
    if (next !== undefined) await clock.advance(Date.parse(next) - clock.now())
  }
  expect(clock.now() - began).toBeGreaterThan(DAY_MS)
  expect(clock.now() - began).toBeLessThan(1.5 * DAY_MS)
  expect(lines[0]?.msg).toMatch(/^try 1 of 20 failed; the next is due at 2030-/)
  expect(lines.at(-1)).toMatchObject({
    level: 50,
    msg: expect.stringMatching(
      /^gave up after 20 tries in (2[4-9]|3\d) h; retry with: couchdb-sidecar retry shop o$/,
    ) as string,
  })
})

test('each backoff delay grows and has jitter', () => {
  const waits = [0, 0.5, 1].map((random) => growingWait({ baseMs: 1000, capMs: 60_000 }, 4, () => random))
  expect(waits).toEqual([8000, 9000, 10_000])
})

test('the same failure of 500 documents logs five lines and one summary', async () => {
  const { clock, lines, attemptOf, fail } = setUp()
  for (let i = 0; i < 500; i++) fail(attemptOf(`o${i}`))
  expect(lines).toHaveLength(5)
  await clock.advance(60_000)
  expect(lines.slice(5)).toMatchObject([{ msg: 'more documents failed', documents: 495, code: 'ECONNREFUSED' }])
  fail(attemptOf('later'))
  expect(lines).toHaveLength(7)
})

test('the number of log lines is limited for different failures, too', async () => {
  const { clock, lines, report, attemptOf } = setUp()
  for (let i = 0; i < 500; i++) {
    const attempt = attemptOf(`o${i}`)
    const failure = { code: 'Error', reason: `of ${i}` }
    attempt.doc = failed(attempt, failure, clock.now(), Math.random)
    report(attempt, { kind: 'failed', failure, stack: undefined })
  }
  expect(lines).toHaveLength(105)
  await clock.advance(60_000)
  expect(lines.slice(105)).toMatchObject([{ msg: 'more documents failed', documents: 395 }])
})

test('the summary of failures is logged when the sidecar stops', async () => {
  const { lines, attemptOf, fail, ending } = setUp()
  for (let i = 0; i < 9; i++) fail(attemptOf(`o${i}`))
  ending.abort(new Error('the end'))
  await new Promise(setImmediate)
  expect(lines.at(-1)).toMatchObject({ documents: 4 })
})

test('a handled document logs one info line, and a rejected document logs its retry command', () => {
  const { lines, report, attemptOf } = setUp()
  const done = attemptOf('o')
  done.doc = { ...done.doc, state: 'invoiced' }
  report(done, { kind: 'next', doc: done.doc })
  const rejected = attemptOf('p')
  const failure = { code: 'no_address', reason: 'the customer has none' }
  rejected.doc = errored(rejected, failure, 0)
  report(rejected, { kind: 'rejected', failure })
  expect(lines).toMatchObject([
    { level: 30, doc: 'o', type: 'order', state: 'paid', next: 'invoiced', msg: 'handled' },
    { level: 40, doc: 'p', code: 'no_address', retry: 'couchdb-sidecar retry shop p' },
  ])
})
