import type { Listed } from '../workers/list-workers.ts'
import { recentOf, RECENT, sumOf } from './activity.tsx'
import { grouped, Table, Text, Time } from './layout.tsx'
import type { Lines } from './series.ts'

interface WorkersProps {
  readonly workers: readonly Listed[]
  /** Lines that the workers have sent, by worker id. */
  readonly lines: ReadonlyMap<string, Lines>
}

/** Shows the registered workers, and each one's share of the runs. */
export const Workers = ({ workers, lines }: WorkersProps) => {
  const recent = new Map([...lines].map(([id, { hour }]) => [id, sumOf(recentOf(hour).points)]))
  const all = [...recent.values()].reduce((sum, { done, failed }) => sum + done + failed, 0)
  return (
    <section>
      <h2 id="workers">Workers</h2>
      {workers.length === 0 ? (
        <p>No worker is registered.</p>
      ) : (
        <Table
          labelledby="workers"
          columns={[
            ...['Worker', 'Role', `Runs, last ${RECENT} minutes`, 'Share', 'Waiting, at most', 'Feeds behind, at most'],
            ...['Started', 'Last heartbeat, by its clock'],
          ]}
        >
          {workers.map(({ id, role, registeredAt, seenAt }) => {
            const sum = recent.get(id)
            const runs = sum && sum.done + sum.failed
            return (
              <tr>
                <th scope="row">
                  <Text of={id} />
                </th>
                <td>
                  <Text of={role} />
                </td>
                <td class="number">{runs === undefined ? '–' : grouped(runs)}</td>
                <td class="number">{runs === undefined || all === 0 ? '–' : `${Math.round((100 * runs) / all)} %`}</td>
                <td class="number">{sum ? grouped(sum.waiting) : '–'}</td>
                <td class="number">{sum ? `${grouped(Math.round(sum.behind))} s` : '–'}</td>
                <td>
                  <Time at={registeredAt} />
                </td>
                <td>
                  <Time at={seenAt} />
                </td>
              </tr>
            )
          })}
        </Table>
      )}
    </section>
  )
}
