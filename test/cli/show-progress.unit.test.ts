import { expect, test } from 'vitest'
import { showProgress } from '../../sidecar/cli/show-progress.ts'
import { systemClock } from '../../sidecar/core/clock.ts'

/** A terminal and a clock; `at` is in seconds. */
function open(hasTerminal: boolean) {
  const lines: string[] = []
  const notes: string[] = []
  let now = 0
  const clock = { ...systemClock, ticks: () => now }
  const redraw = hasTerminal ? (line: string) => void lines.push(line) : undefined
  const { show, end } = showProgress({ redraw, note: (text) => void notes.push(text) }, clock)
  const warming = (at: number, done: number, total: number, ddoc = '_design/shop') => {
    now = at * 1000
    show({ kind: 'warming', database: 'orders', ddoc, done, total })
  }
  return { lines, notes, show, end, warming }
}

test('a terminal shows a one-line bar with count, rate and remaining time', () => {
  const { lines, notes, warming, end } = open(true)
  warming(0, 20_000, 100_000)
  warming(10, 60_000, 100_004)
  warming(20, 100_004, 100_004)
  end()
  expect(lines).toEqual([
    '[##..........] 20 %, 20,000 of 100,000 changes: orders/_design/shop',
    '[#######.....] 59 %, 60,000 of 100,004 changes, 4,000/s, 11 s left: orders/_design/shop',
    '[############] 100 %, 100,004 of 100,004 changes, 4,000/s, 0 s left: orders/_design/shop',
    '',
  ])
  expect(notes).toEqual([])
})

test('without a terminal, a plain line appears every 5 s, and none for shorter work', () => {
  const { notes, warming } = open(false)
  for (let second = 0; second <= 12; second++) warming(second, second * 100, 1_000_000)
  expect(notes).toEqual([
    'index of orders/_design/shop: 0 %, 500 of 1,000,000 changes, 100/s, 2 h 47 min left',
    'index of orders/_design/shop: 0 %, 1,000 of 1,000,000 changes, 100/s, 2 h 47 min left',
  ])
})

test('each index has its own rate, and an empty index is complete', () => {
  const { lines, warming } = open(true)
  warming(0, 0, 1000)
  warming(10, 1000, 1000)
  warming(10, 0, 0, '_design/other')
  expect(lines.at(-1)).toBe('[############] 100 %, 0 of 0 changes: orders/_design/other')
})

test('the progress names the current one of several databases', () => {
  const { lines, show, warming } = open(true)
  show({ kind: 'database', database: 'orders', number: 12, of: 1204 })
  warming(0, 0, 100)
  expect(lines).toEqual([
    'orders (12 of 1,204 databases)',
    '[............] 0 %, 0 of 100 changes: orders/_design/shop (12 of 1,204 databases)',
  ])
})

test('the progress names the holder of a running deploy while it is watched', () => {
  const { notes, show } = open(false)
  const holder = { run: 'r', name: 'ann on desk', since: '2026-01-01T00:00:00.000Z' }
  show({ kind: 'watching', database: 'orders', holder, forMs: 10_000 })
  expect(notes).toEqual([
    'orders: ann on desk has been deploying since 2026-01-01T00:00:00.000Z; 10 s to see whether it still is',
  ])
})
