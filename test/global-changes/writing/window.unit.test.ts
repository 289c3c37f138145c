import { expect, test } from 'vitest'
import { Window } from '../../../sidecar/global-changes/writing/gather.ts'
import { createManualClock } from '../../support/manual-clock.ts'

function start() {
  const clock = createManualClock()
  const closed: string[][] = []
  const settings = { delayMs: 25 }
  const window = new Window({
    clock,
    delayMs: () => settings.delayMs,
    onClose: (members) => void closed.push([...members]),
  })
  return { clock, closed, settings, window }
}

test('events within the delay after the first leave together, each once', async () => {
  const { clock, closed, window } = start()
  window.add(['a'])
  await clock.advance(24)
  window.add(['b', 'a'])
  expect([closed, window.size]).toEqual([[], 2])
  await clock.advance(1)
  expect([closed, window.size]).toEqual([[['a', 'b']], 0])
})

test('the next event opens a new window', async () => {
  const { clock, closed, window } = start()
  window.add(['a'])
  await clock.advance(25)
  await clock.advance(100)
  window.add(['a'])
  await clock.advance(24)
  expect(closed).toEqual([['a']])
  await clock.advance(1)
  expect(closed).toEqual([['a'], ['a']])
})

test('an empty set of events opens no window', async () => {
  const { clock, closed, window } = start()
  window.add([])
  await clock.advance(100)
  expect([closed, clock.sleeping]).toEqual([[], 0])
})

test('a new delay applies to collected events', async () => {
  const { clock, closed, settings, window } = start()
  settings.delayMs = 1000
  window.add(['a'])
  await clock.advance(100)
  settings.delayMs = 150
  window.recheck()
  await clock.advance(49)
  expect(closed).toEqual([])
  await clock.advance(1)
  expect(closed).toEqual([['a']])
  window.add(['b'])
  settings.delayMs = 0
  window.recheck()
  await clock.advance(0)
  expect(closed).toEqual([['a'], ['b']])
})

test('cleared events are not passed on', async () => {
  const { clock, closed, window } = start()
  window.add(['a'])
  window.clear()
  await clock.advance(100)
  expect([closed, clock.sleeping]).toEqual([[], 0])
  window.add(['b'])
  await clock.advance(25)
  expect(closed).toEqual([['b']])
})
