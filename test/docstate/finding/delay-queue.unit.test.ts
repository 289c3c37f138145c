import { expect, test } from 'vitest'
import { DelayQueue } from '../../../sidecar/docstate/finding/delay-queue.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const HORIZON_MS = 120_000

/** What the queue has given out so far, each time's ids together. */
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

test('gives each id when its time has come, earlier ones added later too', async () => {
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

test('an id is given once, at the earliest of its times, and not at all once forgotten', async () => {
  const { clock, queue, given, stop } = start()
  for (const seconds of [20, 5, 30]) queue.add('twice', clock.now() + seconds * 1000)
  queue.add('forgotten', clock.now() + 1000)
  queue.forget('forgotten')
  await clock.advance(60_000)
  expect(given).toEqual([['twice']])
  stop()
})

test('what lies beyond the horizon is left to the sweep', async () => {
  const { clock, queue, given, stop } = start()
  queue.add('far', clock.now() + HORIZON_MS + 1)
  await clock.advance(HORIZON_MS * 2)
  expect(given).toEqual([])
  stop()
})
