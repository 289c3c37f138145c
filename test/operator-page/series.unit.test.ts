/** What workers tell each other of the last hour and day, while someone looks. */
import { expect, test } from 'vitest'
import { Counters } from '../../sidecar/docstate/counters.ts'
import { Series, STEPS } from '../../sidecar/operator-page/series.ts'
import { HeartbeatPayload } from '../../sidecar/workers/heartbeat-payload.ts'
import { metricsFrom, sourcesOf } from '../metrics/sources.ts'
import { createManualClock } from '../support/manual-clock.ts'

const MINUTE_MS = 60_000

function setUp() {
  const clock = createManualClock()
  const worker = (self: string) => {
    const counts = new Counters()
    const handler = counts.of({ type: 'order', state: 'paid' })
    const sources = sourcesOf({ databaseCounters: new Map([['control', counts]]) })
    const payload = new HeartbeatPayload()
    const series = new Series({ metrics: () => metricsFrom(sources), payload, self, clock })
    return { handler, payload, series }
  }
  return { clock, a: worker('a'), b: worker('b') }
}

type Worker = ReturnType<typeof setUp>['a']

/** A heartbeat each, as the other reads it. */
function beat(a: Worker, b: Worker) {
  const beats = () =>
    new Map(
      [
        ['a', a],
        ['b', b],
      ].map(([id, worker]) => [
        id as string,
        { _id: `_local/${id as string}`, ...(JSON.parse(JSON.stringify((worker as Worker).payload.tell())) as object) },
      ]),
    )
  for (const { payload } of [a, b]) payload.hear(beats())
}

test('the runs of all workers are added up, minute by minute, in the hour and in the day', async () => {
  const { clock, a, b } = setUp()
  await Promise.all([a.series.take(), b.series.take()])
  for (let minute = 0; minute < 3; minute++) {
    a.handler.runs.next += 10
    a.handler.took.add(40)
    b.handler.runs.failed += 1
    await clock.advance(MINUTE_MS)
    await Promise.all([a.series.take(), b.series.take()])
  }
  expect(a.series.look().workers).toBe(1)
  for (let rounds = 0; rounds < 3; rounds++) beat(a, b)
  const { lines, workers } = a.series.look()
  expect(workers).toBe(2)
  expect(lines.hour.points).toHaveLength(60)
  expect(lines.hour.points.slice(-4)).toEqual([
    [10, 1, 40, 0, 0],
    [10, 1, 40, 0, 0],
    [10, 1, 40, 0, 0],
    [0, 0, 0, 0, 0],
  ])
  expect(lines.day.points.at(-1)).toEqual([30, 3, 120, 0, 0])
})

test('nothing is told while no one looks, and what is told stays small', async () => {
  const { clock, a, b } = setUp()
  for (let minute = 0; minute < 2000; minute++) {
    a.handler.runs.next += 123_456
    await clock.advance(MINUTE_MS)
    await a.series.take()
  }
  beat(a, b)
  expect([a.payload.tell(), b.payload.tell()]).toEqual([{}, {}])
  b.series.look()
  beat(a, b)
  expect(Object.keys(b.payload.tell())).toEqual(['looked_at'])
  expect(JSON.stringify(a.payload.tell()).length).toBeLessThan(6000)
  await clock.advance(2 * MINUTE_MS)
  expect([a.payload.tell(), b.payload.tell()]).toEqual([{}, {}])
})

test.each([
  null,
  'text',
  {},
  { hour: [], day: [] },
  { hour: { from: 0, points: [[1]] }, day: { from: 0, points: [] } },
  { hour: { from: 1e300, points: [] }, day: 1 },
])('another worker that tells %j adds nothing', async (series) => {
  const { a } = setUp()
  await a.series.take()
  a.payload.hear(new Map([['b', { _id: '_local/b', series, looked_at: 'soon' }]]))
  const { lines, workers } = a.series.look()
  expect(workers).toBe(1)
  expect(lines.hour.points).toHaveLength(STEPS.hour.count)
  expect(a.payload.tell()).not.toHaveProperty('series')
})
