import type { StuckGroup } from '../databases/stuck.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { grouped, listPath, RetryOrDiscard, Table, Text, Time, type Viewer } from './layout.tsx'

interface StuckProps {
  readonly title: string
  readonly groups: readonly StuckGroup[]
  readonly viewer: Viewer
}

/** Shows stuck documents by reason, with the buttons that mend them. */
export const Stuck = ({ title, groups, viewer }: StuckProps) => (
  <section>
    <h2 id="stuck">{title}</h2>
    <Table labelledby="stuck" columns={['Documents', 'Handler', 'Database', 'Status', 'Since', 'Reason', '']}>
      {groups.map((group) => (
        <tr>
          <td class="number">
            <a href={listPath(filterOf(group))}>{grouped(group.count)}</a>
          </td>
          <th scope="row">
            <Text of={`${group.type}/${group.state}`} />
          </th>
          <td>
            <Text of={group.databases} />
          </td>
          <td>
            <span class={`status ${group.status}`}>{group.status}</span>
          </td>
          <td>
            <Time at={group.since} />
          </td>
          <td class="text">
            <Text of={[group.code, group.why].filter(Boolean).join(': ')} />
          </td>
          <td class="actions">
            {viewer.mayAct && STUCK.includes(group.status) && <RetryOrDiscard values={filterOf(group)} what="all" />}
          </td>
        </tr>
      ))}
    </Table>
  </section>
)

const filterOf = ({ databases, type, state, status, code }: StuckGroup) => ({
  db: databases,
  type,
  state,
  status,
  code,
})
