import { expect, test } from 'vitest'
import { FeedLag } from '../../sidecar/feed/lag.ts'

function create() {
  let now = 1000
  const lag = new FeedLag(() => now)
  return { lag, wait: (ms: number) => void (now += ms), state: () => ({ changes: lag.changes, ms: lag.ms }) }
}

test('until the feed has caught up once, the lag is a time without a number of changes', () => {
  const { lag, wait, state } = create()
  wait(40)
  expect(state()).toEqual({ changes: 0, ms: 40 })
  lag.read(10)
  expect(state(), 'rows do not change the lag before a report of the server').toEqual({ changes: 0, ms: 40 })
  lag.caughtUp()
  wait(40)
  expect(state()).toEqual({ changes: 0, ms: 0 })
})

test('each row reduces the remaining changes that the server reported, and the last row ends the lag', () => {
  const { lag, wait, state } = create()
  lag.caughtUp()
  lag.left(1500)
  wait(5)
  lag.read(1000)
  expect(state()).toEqual({ changes: 500, ms: 5 })
  lag.left(700) // more was written in the meantime
  wait(5)
  expect(state()).toEqual({ changes: 700, ms: 10 })
  lag.read(700)
  expect(state()).toEqual({ changes: 0, ms: 0 })
})

test('a server report of no remaining changes ends the lag', () => {
  const { lag, state } = create()
  lag.left(3)
  lag.left(0)
  expect(state()).toEqual({ changes: 0, ms: 0 })
})

test('single new rows at the end of the feed do not count as lag', () => {
  const { lag, wait, state } = create()
  lag.caughtUp()
  for (let row = 0; row < 5; row++) {
    wait(100)
    lag.read(1)
  }
  expect(state()).toEqual({ changes: 0, ms: 0 })
})

test('the lag of a broken feed counts from its first break, with any number of breaks', () => {
  const { lag, wait, state } = create()
  lag.left(9)
  wait(5)
  lag.lost()
  wait(5)
  lag.lost()
  expect(state()).toEqual({ changes: 0, ms: 10 })
  lag.caughtUp()
  wait(5)
  lag.lost()
  wait(2)
  expect(state().ms).toBe(2)
})
