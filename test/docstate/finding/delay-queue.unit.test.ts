import { expect, test } from 'vitest'
import { DelayQueue } from '../../../sidecar/docstate/finding/delay-queue.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const HORIZON_MS = 120_000

/** Records the ids that the queue returns, one array per call. */
function watch(queue: DelayQueue, signal: AbortSignal): string[][] {
  const given: string[][] = []
  const run = async () => {
    for (;;) given.push(await queue.next(signal))
  }
  run().catch(() => undefined)
  return given
}

function start() {
  const clock = createManualClock()
  const queue = new DelayQueue(clock, HORIZON_MS)
  const stopping = new AbortController()
  return { clock, queue, given: watch(queue, stopping.signal), stop: () => stopping.abort(new Error('over')) }
}

test('the queue returns each id when it is due, also an earlier id added later', async () => {
  const { clock, queue, given, stop } = start()
  queue.add('late', clock.now() + 10_000)
  await clock.advance(0)
  queue.add('soon', clock.now() + 1000)
  queue.add('now')
  await clock.advance(0)
  expect(given).toEqual([['now']])
  await clock.advance(1000)
  expect(given).toEqual([['now'], ['soon']])
  await clock.advance(9000)
  expect(given).toEqual([['now'], ['soon'], ['late']])
  stop()
})

test('the queue returns an id once, at its earliest time', async () => {
  const { clock, queue, given, stop } = start()
  for (const seconds of [20, 5, 30]) queue.add('twice', clock.now() + seconds * 1000)
  await clock.advance(60_000)
  expect(given).toEqual([['twice']])
  stop()
})

test('the queue ignores ids beyond the horizon, which the resync finds', async () => {
  const { clock, queue, given, stop } = start()
  queue.add('far', clock.now() + HORIZON_MS + 1)
  await clock.advance(HORIZON_MS * 2)
  expect(given).toEqual([])
  stop()
})
