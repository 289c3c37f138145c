import { grouped, Table } from './layout.tsx'
import { STEPS, type Line, type Lines, type Point } from './series.ts'

export interface LatelyProps {
  readonly lines: Lines
  /** That have told theirs. */
  readonly workers: number
}

const NOW = 5

/** What happened in the last minutes, hour and day: numbers for all, and graphs where scripts run. */
export const Lately = ({ lines: { hour, day }, workers }: LatelyProps) => {
  const rows = [
    [`the last ${NOW} minutes`, hour.points.slice(-NOW), NOW * 60],
    ['the last hour', hour.points, (STEPS.hour.count * STEPS.hour.ms) / 1000],
    ['the last day', day.points, (STEPS.day.count * STEPS.day.ms) / 1000],
  ] as const
  return (
    <section>
      <h2 id="lately">Lately</h2>
      <div id="graphs" class="graphs" data-from="/_page/series"></div>
      <Table
        labelledby="lately"
        columns={['In', 'Done', 'A second', 'Failed tries', 'A run takes', 'Most waiting', 'Feeds behind at most']}
      >
        {rows.map(([name, points, seconds]) => {
          const { done, failed, runMs, waiting, behind } = sumOf(points)
          return (
            <tr>
              <th scope="row">{name}</th>
              <td class="number">{grouped(done)}</td>
              <td class="number">{(done / seconds).toPrecision(2)}</td>
              <td class="number">{grouped(failed)}</td>
              <td class="number">{done + failed === 0 ? '–' : `${grouped(Math.round(runMs))} ms`}</td>
              <td class="number">{grouped(waiting)}</td>
              <td class="number">{`${grouped(Math.round(behind))} s`}</td>
            </tr>
          )
        })}
      </Table>
      <p class="quiet">
        {workers === 1
          ? 'Of this worker since its start; others tell theirs while a page is open.'
          : `Of ${workers} workers together, each since its start.`}
      </p>
    </section>
  )
}

function sumOf(points: readonly Point[]) {
  const sum = (at: 0 | 1 | 2) => points.reduce((all, point) => all + point[at], 0)
  const [done, failed, ms] = [sum(0), sum(1), sum(2)]
  const most = (at: 3 | 4) => Math.max(0, ...points.map((point) => point[at]))
  return { done, failed, runMs: ms / Math.max(1, done + failed), waiting: most(3), behind: most(4) }
}

/** For the graphs: seconds since 1970, and a value for each, of each span. */
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
    waiting: points.map((point) => point[3]),
    behind: points.map((point) => point[4]),
  }
}
