/** The numbers of the last hour and day that workers exchange while a page is open. */
import { expect, test } from 'vitest'
import { Counters } from '../../sidecar/docstate/counters.ts'
import { OtherWorkers } from '../../sidecar/operator-page/other-workers.ts'
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
    const series = new Series({ metrics: () => metricsFrom(sources), self, clock })
    const report = () => ({ series: series.lines })
    const others = new OtherWorkers({
      payload,
      self,
      clock,
      dataToSend: report,
      requestsToSend: () => ({}),
      onRequest: () => undefined,
    })
    return { handler, payload, series, look: () => series.with(others.look()) }
  }
  return { clock, a: worker('a'), b: worker('b') }
}

type Worker = ReturnType<typeof setUp>['a']

/** One heartbeat of each worker, as the other reads it. */
function beat(a: Worker, b: Worker) {
  const beats = () =>
    new Map(
      [
        ['a', a],
        ['b', b],
      ].map(([id, worker]) => [
        id as string,
        {
          _id: `_local/${id as string}`,
          ...(JSON.parse(JSON.stringify((worker as Worker).payload.fieldsToSend())) as object),
        },
      ]),
    )
  for (const { payload } of [a, b]) payload.receive(beats())
}

test('the series add up the runs of all workers by minute, for the hour and the day', async () => {
  const { clock, a, b } = setUp()
  await Promise.all([a.series.take(), b.series.take()])
  for (let minute = 0; minute < 3; minute++) {
    a.handler.runs.next += 10
    a.handler.took.add(40)
    b.handler.waited.add(7)
    b.handler.runs.failed += 1
    await clock.advance(MINUTE_MS)
    await Promise.all([a.series.take(), b.series.take()])
  }
  expect((await a.look()).workers.size).toBe(1)
  for (let rounds = 0; rounds < 3; rounds++) beat(a, b)
  const { lines, workers } = await a.look()
  expect([...workers.keys()]).toEqual(['a', 'b'])
  expect(lines.hour.points).toHaveLength(60)
  expect(lines.hour.points.slice(-4)).toEqual([
    [10, 1, 40, 7, 0, 0, 0, 0, 0],
    [10, 1, 40, 7, 0, 0, 0, 0, 0],
    [10, 1, 40, 7, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 0, 0, 0],
  ])
  expect(lines.day.points.at(-1)).toEqual([30, 3, 120, 21, 0, 0, 0, 0, 0])
})

test('the series include what ran since the last full minute', async () => {
  const { clock, a } = setUp()
  await a.series.take()
  await clock.advance(MINUTE_MS / 2)
  a.handler.runs.next += 3
  const [first, second] = await Promise.all([a.look(), a.look()])
  expect(first.lines.hour.points.at(-1)?.[0]).toBe(3)
  expect(second.lines.hour.points.at(-1)?.[0]).toBe(3)
  await clock.advance(MINUTE_MS / 2)
  await a.series.take()
  expect((await a.look()).lines.day.points.at(-1)?.[0]).toBe(3)
})

test('a worker reports nothing while no page is open, and its report stays small', async () => {
  const { clock, a, b } = setUp()
  for (let minute = 0; minute < 2000; minute++) {
    a.handler.runs.next += 123_456
    await clock.advance(MINUTE_MS)
    await a.series.take()
  }
  beat(a, b)
  expect([a.payload.fieldsToSend(), b.payload.fieldsToSend()]).toEqual([{}, {}])
  await b.look()
  beat(a, b)
  expect(Object.keys(b.payload.fieldsToSend())).toEqual(['looked_at'])
  expect(JSON.stringify(a.payload.fieldsToSend()).length).toBeLessThan(6000)
  await clock.advance(2 * MINUTE_MS)
  expect([a.payload.fieldsToSend(), b.payload.fieldsToSend()]).toEqual([{}, {}])
})

test.each([
  null,
  'text',
  {},
  { hour: [], day: [] },
  { hour: { from: 0, points: [[1]] }, day: { from: 0, points: [] } },
  { hour: { from: 1e300, points: [] }, day: 1 },
])('a report %j of another worker adds nothing', async (series) => {
  const { a } = setUp()
  await a.series.take()
  a.payload.receive(new Map([['b', { _id: '_local/b', series, looked_at: 'soon' }]]))
  const { lines, workers } = await a.look()
  expect(workers.size).toBe(1)
  expect(lines.hour.points).toHaveLength(STEPS.hour.count)
  expect(a.payload.fieldsToSend()).not.toHaveProperty('series')
})
