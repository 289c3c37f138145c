import type { IndexerTask } from '../indexes/indexer-tasks.ts'
import type { Note } from '../indexes/notes.ts'
import { grouped, Layout, Table, Text, Time, type Viewer } from './layout.tsx'

interface IndexesProps {
  readonly viewer: Viewer
  /** Notes of all workers that build indexes. */
  readonly notes: readonly Note[]
  /** Index builds that CouchDB runs now, those for deploys included. */
  readonly tasks: readonly IndexerTask[]
}

/** Shows which indexes are stale, and which are being built. */
export const Indexes = ({ viewer, notes, tasks }: IndexesProps) => {
  const behind = notes.flatMap((note) => note.behind)
  const all = notes.reduce((sum, { indexes }) => sum + indexes, 0)
  return (
    <Layout title="Indexes" current="/indexes" isLive="slowly" viewer={viewer}>
      <p role="status" class={behind.length === 0 ? 'well' : 'bad'}>
        {behind.length === 0
          ? `${all === 1 ? '1 index is' : `${grouped(all)} indexes are`} up to date.`
          : `${grouped(behind.length)} of ${grouped(all)} indexes are behind their documents, or cannot be built.`}
      </p>
      {behind.length > 0 && (
        <section>
          <h2 id="behind">Behind or failing</h2>
          <Table
            labelledby="behind"
            columns={['Design document', 'Database', 'Changes behind', 'Seconds behind', 'Reason']}
          >
            {behind.map((row) => (
              <tr>
                <th scope="row">
                  <Text of={row.index === null ? row.ddoc : `${row.ddoc} ${row.index}`} />
                </th>
                <td>
                  <Text of={row.db_name} />
                </td>
                <td class="number">{row.lag_changes === null ? 'unknown' : grouped(row.lag_changes)}</td>
                <td class="number">{grouped(Math.round(row.lag_seconds))}</td>
                <td>
                  <Text
                    of={row.error ? `${row.error.code}: ${row.error.reason}` : row.building ? 'being built' : 'waiting'}
                  />
                </td>
              </tr>
            ))}
          </Table>
        </section>
      )}
      <section>
        <h2 id="built">Being built now</h2>
        <IndexerTasks labelledby="built" tasks={tasks} />
      </section>
      <section>
        <h2 id="keepers">Workers that build them</h2>
        <Table labelledby="keepers" columns={['Worker', 'Indexes', 'Reported at, by its clock']}>
          {notes.map(({ worker, indexes, at }) => (
            <tr>
              <th scope="row">
                <Text of={worker} />
              </th>
              <td class="number">{grouped(indexes)}</td>
              <td>
                <Time at={at} />
              </td>
            </tr>
          ))}
        </Table>
      </section>
    </Layout>
  )
}

interface TasksProps {
  /** Id of the heading. */
  readonly labelledby: string
  readonly tasks: readonly IndexerTask[]
}

/** Shows the index builds of CouchDB with their progress. */
export const IndexerTasks = ({ labelledby, tasks }: TasksProps) =>
  tasks.length === 0 ? (
    <p>None.</p>
  ) : (
    <Table labelledby={labelledby} columns={['Design document', 'Database', 'Node', 'Done']}>
      {tasks.map(({ ddoc, database, node, changesDone, changesTotal }) => (
        <tr>
          <th scope="row">
            <Text of={ddoc} />
          </th>
          <td>
            <Text of={database} />
          </td>
          <td>
            <Text of={node} />
          </td>
          <td>
            <progress
              value={Math.min(changesDone, changesTotal)}
              max={Math.max(1, changesTotal)}
              aria-label={`${ddoc} in ${database}`}
            ></progress>{' '}
            {grouped(changesDone)} of {grouped(changesTotal)}
          </td>
        </tr>
      ))}
    </Table>
  )
