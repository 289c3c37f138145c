import { describe, expect, it, test } from 'vitest'
import { decide, type Decision, type Job, type Situation } from '../../sidecar/indexes/decide.ts'

const NOW = 1_000_000
/** The situation with the default settings. */
const usual: Situation = {
  ...{ job: undefined, seq: 5000, active: 0, batch: 20, total: 100 },
  ...{ maxIncrementalUpdates: 1000, batchSize: 1, delayMs: 5000, now: NOW },
  lag: () => Promise.reject(new Error('this case does not need the lag')),
}
const idle = (seq: number, idleMs: number): Job => ({ isRunning: false, seq, at: NOW - idleMs, notBefore: 0 })
const lag = (changes: number) => () => Promise.resolve(changes)

const start: Decision = { kind: 'start' }
const full: Decision = { kind: 'full' }
const wait = (ms: number): Decision => ({ kind: 'wait', ms })

/** `ken_server:should_start_job/2`, row by row: its `true` is `start`, and its `false` is one of the others. */
describe('the decision table of CouchDB’s ken', () => {
  it.each<[string, Partial<Situation>, Decision]>([
    ['never built, a batch channel is free', { active: 19 }, start],
    ['never built, only incremental channels are free, few changes', { active: 20, lag: lag(999) }, start],
    ['never built, only incremental channels are free, many changes', { active: 20, lag: lag(1000) }, full],
    ['never built, no channel is free', { active: 100 }, full],
    ['built, a batch channel is free, as many changes as a batch', { job: idle(4999, 0) }, start],
    ['built, a batch channel is free, fewer changes', { job: idle(4999, 1000), batchSize: 2 }, wait(4000)],
    [
      'built, a batch channel is free, fewer changes, the delay is over',
      { job: idle(4999, 5001), batchSize: 2 },
      start,
    ],
    [
      'built, only incremental channels are free, few changes, the delay is not over',
      { job: idle(4999, 1000), active: 20 },
      { kind: 'full', ms: 4000 },
    ],
    [
      'built, only incremental channels are free, few changes, the delay is over',
      { job: idle(4001, 5001), active: 20 },
      start,
    ],
    ['built, only incremental channels are free, many changes', { job: idle(4000, 5001), active: 20 }, full],
    ['built, no channel is free', { job: idle(0, 60_000), active: 100 }, full],
    ['a build is running', { job: { ...idle(0, 60_000), isRunning: true } }, { kind: 'running' }],
  ])('%s', async (_, situation, expected) => {
    expect(await decide({ ...usual, ...situation })).toEqual(expected)
  })
})

test('an index at the sequence of its database is not built at any age', async () => {
  for (const idleMs of [0, 5001, 1e9])
    expect(await decide({ ...usual, job: idle(5000, idleMs) })).toEqual({ kind: 'fresh' })
})

test('a failed index waits for its retry time despite new changes, and is then retried without any', async () => {
  const failed = { ...idle(5000, 1000), notBefore: NOW + 4000 }
  expect(await decide({ ...usual, job: failed })).toEqual(wait(4000))
  expect(await decide({ ...usual, job: failed, seq: 9000 })).toEqual(wait(4000))
  expect(await decide({ ...usual, job: failed, now: NOW + 4001 })).toEqual(start)
})

test('no index is built without channels', async () => {
  const none = { ...usual, batch: 0, total: 0 }
  for (const job of [undefined, idle(0, 0), idle(4999, 60_000)]) expect(await decide({ ...none, job })).toEqual(full)
})
