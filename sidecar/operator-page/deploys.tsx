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
  /** What CouchDB builds now. */
  readonly tasks: readonly IndexerTask[]
}

/** In which databases design documents are being deployed, and how far that is. */
export const Deploys = ({ viewer, looked, tasks }: DeploysProps) => {
  const { databases, total, isWhole, unread, trouble } = looked
  const underWay = databases.flatMap(({ name, deploy }) => (deploy ? [{ name, deploy }] : []))
  const staged = copyId('staged', '_design/')
  return (
    <Layout title="Deploys" current="/deploys" isLive={isWhole ? 'slowly' : 'soon'} viewer={viewer}>
      <p role="status">
        {!isWhole &&
          unread.length === 0 &&
          `${grouped(databases.length)} of ${grouped(total)} databases are looked at so far. `}
        {underWay.length > 0
          ? `In ${grouped(underWay.length)} of ${grouped(total)} databases a deploy is not complete.`
          : isWhole && 'No deploy is under way.'}
      </p>
      {(unread.length > 0 || trouble) && <Sentences of={[...(trouble ? [trouble] : []), ...unread]} />}
      {underWay.length > 0 && (
        <Table label="Deploys" columns={['Database', 'By', 'Since', 'Design documents', 'Step', 'At']}>
          {underWay.map(({ name, deploy }) => (
            <Row {...{ name, deploy }} />
          ))}
        </Table>
      )}
      {underWay.length > 0 && (
        <p>
          A deploy whose process has ended is gone on with by the next one;{' '}
          <code>couchdb-sidecar deploy --rollback</code> takes it back.
        </p>
      )}
      <section>
        <h2 id="built">Indexes that are built for them</h2>
        <IndexerTasks labelledby="built" tasks={tasks.filter(({ ddoc }) => ddoc.startsWith(staged))} />
      </section>
    </Layout>
  )
}

const STEPS: Readonly<Record<StagedStep, string>> = {
  began: 'begins',
  staging: 'builds the index of',
  warmed: 'has built the index of',
  swapping: 'writes the design documents',
  cleaning: 'removes what is not needed any more',
}

const Row = ({ name, deploy: { holder, ddocs, log } }: { readonly name: string; readonly deploy: Deploy }) => {
  const last = log.at(-1)
  return (
    <tr>
      <th scope="row">
        <Text of={name} />
      </th>
      <td>
        <Text of={holder ? String(holder.name) : 'none: it has broken off'} />
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
