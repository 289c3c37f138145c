import type { CanaryResult } from '../canary/canary.ts'
import type { StuckGroup } from '../databases/stuck.ts'
import { handlersOf } from '../databases/capabilities.ts'
import type { Note } from '../indexes/notes.ts'
import type { Listed } from '../workers/list-workers.ts'
import type { Batch } from './batches.ts'
import type { Counted } from './per-database.ts'
import type { RecentEvent } from './recent-events.ts'
import { Activity, type ActivityProps } from './activity.tsx'
import { Databases, type Feed } from './databases.tsx'
import { grouped, Layout, Sentences, listPath, Table, Text, Time, type Viewer } from './layout.tsx'
import { UnderWay } from './outcome.tsx'
import { Stuck } from './stuck.tsx'
import { Workers } from './workers.tsx'

interface OverviewProps {
  readonly viewer: Viewer
  readonly counted: Counted
  readonly groups: readonly StuckGroup[]
  /** Sentences about databases that could not be searched for stuck documents. */
  readonly unread: readonly string[]
  /** Current problems of this worker. */
  readonly problems: readonly string[]
  readonly workers: readonly Listed[]
  /** Notes of all workers that build indexes. */
  readonly indexNotes: readonly Note[]
  readonly activity: ActivityProps
  readonly feeds: readonly Feed[]
  /** Names and globs in the settings. */
  readonly patterns: readonly string[]
  /** Newest first. */
  readonly recentEvents: readonly RecentEvent[]
  /** Orders of operators in progress. */
  readonly batches: readonly Batch[]
}

/** Shows whether all is well, and which documents are stuck, why, and since when. */
export const Overview = ({
  viewer,
  counted,
  groups,
  unread,
  problems,
  workers,
  indexNotes,
  activity,
  feeds,
  patterns,
  recentEvents,
  batches,
}: OverviewProps) => {
  const stuck = groups.reduce((sum, { count }) => sum + count, 0)
  const reasons = [
    ...problems,
    ...(counted.trouble ? [counted.trouble] : []),
    ...new Set([...counted.unread, ...unread]),
    ...(workers.length === 0 ? ['No worker runs.'] : []),
    ...failingIndexes(indexNotes),
  ]
  const isCounted = counted.isWhole
  const isWell = isCounted && reasons.length === 0 && stuck === 0
  const handlers = new Set(workers.flatMap((worker) => handlersOf(worker)))
  return (
    <Layout title="Overview" current="/" hasGraphs isLive={isCounted ? 'slowly' : 'soon'} viewer={viewer}>
      <p class={isWell ? 'well' : isCounted || stuck > 0 || reasons.length > 0 ? 'bad' : ''} role="status">
        {stuck > 0
          ? `${grouped(stuck)} ${stuck === 1 ? 'document is' : 'documents are'} stuck.`
          : isWell
            ? 'All is well.'
            : isCounted || reasons.length > 0
              ? 'Not all is well.'
              : 'Counting the documents.'}
      </p>
      {reasons.length > 0 && <Sentences of={reasons} />}
      {batches.length > 0 && <UnderWay batches={batches} />}
      {groups.length > 0 && <Stuck title="Stuck documents" groups={groups} viewer={viewer} />}
      <Activity {...activity} />
      <Workers workers={workers} lines={activity.workers} />
      <Databases {...{ feeds, counted, patterns }} />
      {recentEvents.length > 0 && <RecentEvents recentEvents={recentEvents} />}
      <States counted={counted} handlers={handlers} />
      {viewer.mayAct && (
        <form method="post" action="/canary">
          <button class="quiet">Send a canary</button> The sidecar writes a test document, handles it, and deletes it.
        </form>
      )}
    </Layout>
  )
}

function failingIndexes(notes: readonly Note[]): readonly string[] {
  const failing = notes.flatMap(({ behind }) => behind).filter(({ error }) => error !== null)
  if (failing.length === 0) return []
  return [`${failing.length === 1 ? 'An index' : `${grouped(failing.length)} indexes`} cannot be built: see Indexes.`]
}

const RecentEvents = ({ recentEvents }: Pick<OverviewProps, 'recentEvents'>) => (
  <section>
    <h2 id="events">Recent events</h2>
    <ol class="timeline">
      {recentEvents.map(({ at, text, path, worker }) => (
        <li>
          <Time at={at} />
          {path === undefined ? (
            <Text of={text} />
          ) : (
            <a href={path}>
              <Text of={text} />
            </a>
          )}
          {worker !== undefined && <Text of={`in ${worker}`} />}
        </li>
      ))}
    </ol>
  </section>
)

/** Replaces every page while CouchDB does not answer: only CouchDB can say who may see pages. */
export const Away = ({ problems }: Pick<OverviewProps, 'problems'>) => (
  <Layout title="CouchDB does not answer" isLive="slowly" viewer={undefined}>
    <p class="bad" role="status">
      No page can be shown and no document is handled until CouchDB answers. Nothing is lost: the sidecar continues by
      itself.
    </p>
    <Sentences of={problems} />
    <p>Check that CouchDB runs, and that this machine can reach it.</p>
  </Layout>
)

interface CanaryProps {
  readonly viewer: Viewer
  readonly result: CanaryResult
}

/** Shows the result of a canary. */
export const Canary = ({ viewer, result }: CanaryProps) => (
  <Layout title="Canary" viewer={viewer}>
    {result.kind === 'arrived' ? (
      <p class="well" role="status">
        The canary arrived after <Text of={`${Math.round(result.ms)} ms, handled by ${result.worker}`} />.
      </p>
    ) : (
      <>
        <p class="bad" role="status">
          The canary has not arrived.
        </p>
        <Sentences of={result.reasons} />
      </>
    )}
    <p>
      <a href="/">To the overview</a>
    </p>
  </Layout>
)

const States = ({ counted, handlers }: { readonly counted: Counted; readonly handlers: ReadonlySet<string> }) => {
  const { databases, total } = counted
  const sums = new Map<string, Map<string, number>>()
  for (const { counted } of databases)
    for (const { type, state, status, count } of counted?.counts ?? []) {
      const sum = sums.get(`${type}/${state}`) ?? new Map<string, number>()
      sums.set(`${type}/${state}`, sum.set(status, (sum.get(status) ?? 0) + count))
    }
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
  return (
    <section>
      <h2 id="states">Documents by state</h2>
      {!counted.isWhole && <p>{`${grouped(databases.length)} of ${grouped(total)} databases are counted so far.`}</p>}
      <Table labelledby="states" columns={['Type and state', 'Documents']}>
        {rows.map(([name, statuses]) => {
          const [type = '', state = ''] = split(name)
          return (
            <tr>
              <th scope="row">
                <Text of={name} />
              </th>
              <td>
                {[...statuses].map(([status, count]) => (
                  <a class={`status ${status}`} href={listPath({ type, state, status })}>
                    {grouped(count)} {status === 'ready' && !handlers.has(name) ? 'at rest' : status}
                  </a>
                ))}
              </td>
            </tr>
          )
        })}
      </Table>
    </section>
  )
}

/** The type of a schedule contains a slash. */
const split = (name: string) => [name.slice(0, name.lastIndexOf('/')), name.slice(name.lastIndexOf('/') + 1)] as const
