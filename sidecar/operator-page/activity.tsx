import type { Child } from 'hono/jsx'
import { grouped, Table } from './layout.tsx'
import { STEPS, type Line, type Lines, type Point } from './series.ts'

export interface ActivityProps {
  /** Lines of all workers together. */
  readonly lines: Lines
  /** Workers whose numbers are in `lines`. */
  readonly workers: ReadonlyMap<string, Lines>
}

/** Minutes. */
export const RECENT = 5

/** Shows numbers of the last minutes, hour and day, and graphs if scripts run. */
export const Activity = ({ lines: { hour, day }, workers }: ActivityProps) => {
  const spans = [recentOf(hour), { points: hour.points, seconds: 3600 }, { points: day.points, seconds: 86_400 }]
  const sums = spans.map(({ points, seconds }) => ({ ...sumOf(points), seconds }))
  const row = (name: Child, valueOf: (sum: Sum & { readonly seconds: number }) => string) => (
    <tr>
      <th scope="row">{name}</th>
      {sums.map((sum) => (
        <td class="number">{valueOf(sum)}</td>
      ))}
    </tr>
  )
  const mean = (ms: number | undefined) => (ms === undefined ? '–' : `${grouped(Math.round(ms))} ms`)
  const seconds = (most: number) => `${grouped(Math.round(most))} s`
  return (
    <section>
      <h2 id="activity">Recent activity</h2>
      <div id="graphs" class="graphs" data-from="/_page/series"></div>
      <Table labelledby="activity" columns={['', `Last ${RECENT} minutes`, 'Last hour', 'Last day']}>
        {row('Documents handled', ({ done }) => grouped(done))}
        {row('Documents handled a second', ({ done, seconds }) => (done / seconds).toPrecision(2))}
        {row('Failed attempts', ({ failed }) => grouped(failed))}
        {row('From read to handler, mean', ({ waitMs }) => mean(waitMs))}
        {row('Handler run time, mean', ({ runMs }) => mean(runMs))}
        {row('Documents waiting, at most', ({ waiting }) => grouped(waiting))}
        {row('Feeds behind, at most', ({ behind }) => seconds(behind))}
        {row(<a href="/indexes">Indexes behind, at most</a>, ({ indexLag }) => seconds(indexLag))}
        {row(<a href="/mails">Mails sent</a>, ({ mailsSent }) => grouped(mailsSent))}
        {row(<a href="/mails">Failed attempts to send a mail</a>, ({ mailsFailed }) => grouped(mailsFailed))}
      </Table>
      <p class="quiet">
        {workers.size === 1
          ? 'Of this worker since its start. Other workers add theirs within seconds.'
          : `Of ${workers.size} workers together, each since its start.`}
      </p>
    </section>
  )
}

type Sum = ReturnType<typeof sumOf>

/** The last minutes of an hour. */
export const recentOf = (hour: Line) => ({ points: hour.points.slice(-RECENT), seconds: RECENT * 60 })

export function sumOf(points: readonly Point[]) {
  const sum = (at: 0 | 1 | 2 | 3 | 6 | 7) => points.reduce((all, point) => all + point[at], 0)
  const most = (at: 4 | 5 | 8) => Math.max(0, ...points.map((point) => point[at]))
  const [done, failed] = [sum(0), sum(1)]
  const mean = (at: 2 | 3) => (done + failed === 0 ? undefined : sum(at) / (done + failed))
  return {
    ...{ done, failed, runMs: mean(2), waitMs: mean(3), waiting: most(4), behind: most(5) },
    ...{ mailsSent: sum(6), mailsFailed: sum(7), indexLag: most(8) },
  }
}

/** Data of the graphs, for each span: times in seconds since 1970, and a value for each. */
export const graphsOf = ({ hour, day }: Lines) => ({
  hour: graphOf(hour, STEPS.hour.ms),
  day: graphOf(day, STEPS.day.ms),
})

function graphOf({ from, points }: Line, ms: number) {
  const seconds = ms / 1000
  return {
    at: points.map((_, at) => (from + at) * seconds),
    done: points.map(([done]) => done / seconds),
    failed: points.map(([, failed]) => failed / seconds),
    run: points.map(([done, failed, sum]) => (done + failed === 0 ? null : sum / (done + failed))),
    wait: points.map(([done, failed, , sum]) => (done + failed === 0 ? null : sum / (done + failed))),
    waiting: points.map((point) => point[4]),
    behind: points.map((point) => point[5]),
  }
}
