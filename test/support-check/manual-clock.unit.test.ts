import { expect, test } from 'vitest'
import { createManualClock } from '../support/manual-clock.ts'

const { signal } = new AbortController()

test('a sleep does not end before its time', async () => {
  const clock = createManualClock(1000)
  const woken: number[] = []
  void clock.sleep(200, signal).then(() => woken.push(clock.now()))
  void clock.sleep(100, signal).then(() => woken.push(clock.now()))
  expect(clock.sleeping).toBe(2)
  await clock.advance(99)
  expect(woken).toEqual([])
  await clock.advance(200)
  expect(woken).toEqual([1100, 1200])
  expect(clock.now()).toBe(1299)
  expect(clock.ticks()).toBe(299)
})

test('a second sleep within the advanced time ends, too', async () => {
  const clock = createManualClock()
  let rounds = 0
  const stop = new AbortController()
  const running = (async () => {
    for (;;) {
      await clock.sleep(10, stop.signal)
      rounds += 1
    }
  })()
  await clock.advance(100)
  expect(rounds).toBe(10)
  stop.abort(new Error('enough'))
  await expect(running).rejects.toThrow('enough')
  expect(clock.sleeping).toBe(0)
})
