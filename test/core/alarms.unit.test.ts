import { expect, test } from 'vitest'
import { createAlarms } from '../../sidecar/core/alarms.ts'
import { createManualClock } from '../support/manual-clock.ts'

function start() {
  const clock = createManualClock()
  const alarms = createAlarms(clock)
  const rung: string[] = []
  const set = (name: string, ms: number) => alarms.set(ms, () => void rung.push(`${name} ${clock.ticks()}`))
  return { clock, alarms, rung, set }
}

test('an alarm rings each time its interval has passed', async () => {
  const { clock, rung, set } = start()
  const alarm = set('a', 100)
  await clock.advance(99)
  expect(rung).toEqual([])
  await clock.advance(201)
  expect(rung).toEqual(['a 100', 'a 200', 'a 300'])
  alarm.stop()
  await clock.advance(1000)
  expect(rung).toHaveLength(3)
})

test('hundreds of alarms with the same interval share one timer, and each rings at its own time', async () => {
  const { clock, rung, set } = start()
  const alarms = []
  for (let i = 0; i < 300; i++) {
    alarms.push(set(`a${i}`, 1000))
    await clock.advance(1)
  }
  expect(clock.sleeping).toBe(1)
  await clock.advance(1000)
  expect(rung).toEqual(Array.from({ length: 300 }, (_, i) => `a${i} ${i + 1000}`))
  for (const alarm of alarms) alarm.stop()
  await clock.advance(0)
  expect(clock.sleeping).toBe(0)
})

test('a stopped alarm stays stopped, and a second stop affects no other alarm', async () => {
  const { clock, rung, set } = start()
  const stopped = set('a', 100)
  stopped.stop()
  await clock.advance(50)
  const other = set('b', 100)
  stopped.stop()
  await clock.advance(100)
  expect(rung).toEqual(['b 150'])
  other.stop()
})

test('a ringing alarm can stop itself and others, and set another one', async () => {
  const { clock, alarms, rung, set } = start()
  const other = set('other', 200)
  const first = alarms.set(100, () => {
    first.stop()
    set('next', 100)
  })
  const last = alarms.set(200, () => other.stop())
  await clock.advance(200)
  expect(rung).toEqual(['other 200', 'next 200'])
  await clock.advance(200)
  expect(rung).toEqual(['other 200', 'next 200', 'next 300', 'next 400'])
  last.stop()
})

test('an interval of zero becomes the shortest possible interval', async () => {
  const { clock, rung, set } = start()
  const alarm = set('a', 0)
  await clock.advance(1)
  expect(rung).toEqual(['a 1'])
  alarm.stop()
})
