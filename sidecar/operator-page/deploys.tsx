import type { StagedStep, readDeploy } from '../deploy/staging/record.ts'
import { copyId } from '../deploy/staging/copy.ts'
import type { IndexerTask } from '../indexes/indexer-tasks.ts'
import { IndexerTasks } from './indexes.tsx'
import { grouped, Layout, Sentences, Table, Text, Time, type Viewer } from './layout.tsx'
import type { Looked } from './per-database.ts'

type Deploy = NonNullable<Awaited<ReturnType<typeof readDeploy>>>

interface DeploysProps {
  readonly viewer: Viewer
  readonly looked: Looked<{ readonly name: string; readonly deploy: Deploy | undefined }>
  /** Index builds that CouchDB runs now. */
  readonly tasks: readonly IndexerTask[]
}

/** Shows incomplete deploys of design documents, by database. */
export const Deploys = ({ viewer, looked, tasks }: DeploysProps) => {
  const { databases, total, isWhole, unread, trouble } = looked
  const underWay = databases.flatMap(({ name, deploy }) => (deploy ? [{ name, deploy }] : []))
  const staged = copyId('staged', '_design/')
  return (
    <Layout title="Deploys" current="/deploys" isLive={isWhole ? 'slowly' : 'soon'} viewer={viewer}>
      <p role="status">
        {!isWhole &&
          unread.length === 0 &&
          `${grouped(databases.length)} of ${grouped(total)} databases are checked so far. `}
        {underWay.length > 0
          ? `A deploy is not complete in ${grouped(underWay.length)} of ${grouped(total)} databases.`
          : isWhole && 'No deploy is under way.'}
      </p>
      {(unread.length > 0 || trouble) && <Sentences of={[...(trouble ? [trouble] : []), ...unread]} />}
      {underWay.length > 0 && (
        <Table label="Deploys" columns={['Database', 'Deployed by', 'Since', 'Design documents', 'Last step', 'Time']}>
          {underWay.map(({ name, deploy }) => (
            <Row {...{ name, deploy }} />
          ))}
        </Table>
      )}
      {underWay.length > 0 && (
        <p>
          If the process of a deploy has ended, run the deploy again to complete it. To undo it, run{' '}
          <code>couchdb-sidecar deploy --rollback</code>.
        </p>
      )}
      <section>
        <h2 id="built">Indexes being built for deploys</h2>
        <IndexerTasks labelledby="built" tasks={tasks.filter(({ ddoc }) => ddoc.startsWith(staged))} />
      </section>
    </Layout>
  )
}

const STEPS: Readonly<Record<StagedStep, string>> = {
  began: 'started',
  staging: 'building the index of',
  warmed: 'built the index of',
  swapping: 'writing the design documents',
  cleaning: 'removing temporary documents',
}

const Row = ({ name, deploy: { holder, ddocs, log } }: { readonly name: string; readonly deploy: Deploy }) => {
  const last = log.at(-1)
  return (
    <tr>
      <th scope="row">
        <Text of={name} />
      </th>
      <td>
        <Text of={holder ? String(holder.name) : 'its process has ended'} />
      </td>
      <td>
        <Time at={holder ? String(holder.since) : undefined} />
      </td>
      <td>
        <Text of={ddocs.join(', ')} />
      </td>
      <td>
        <Text of={last ? [STEPS[last.step] ?? last.step, last.ddoc].filter(Boolean).join(' ') : ''} />
      </td>
      <td>
        <Time at={last?.at} />
      </td>
    </tr>
  )
}
