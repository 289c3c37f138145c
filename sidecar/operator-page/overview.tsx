import type { CanaryResult } from '../canary/canary.ts'
import type { StuckGroup } from '../databases/stuck.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import type { Batch } from './batches.ts'
import type { Counted } from './per-database.ts'
import type { RecentEvent } from './recent-events.ts'
import { UnderWay } from './outcome.tsx'
import { Lately, type LatelyProps } from './lately.tsx'
import { grouped, Layout, Sentences, listPath, RetryOrDiscard, Table, Text, Time, type Viewer } from './layout.tsx'

interface OverviewProps {
  readonly viewer: Viewer
  readonly counted: Counted
  readonly groups: readonly StuckGroup[]
  /** Of databases that could not be looked through. */
  readonly unread: readonly string[]
  /** What keeps this worker from its work. */
  readonly problems: readonly string[]
  readonly workers: number
  readonly lately: LatelyProps
  /** Of the worker that serves the page, the last first. */
  readonly recentEvents: readonly RecentEvent[]
  /** Orders of operators that are under way in this worker. */
  readonly batches: readonly Batch[]
  /** Where the mails are shown that were caught here; undefined where they are sent. */
  readonly mailbox: string | undefined
  /** That some worker has, by `type/state`. */
  readonly handlers: ReadonlySet<string>
}

/** Is all well? What does not go on, why, and since when? */
export const Overview = ({
  viewer,
  counted,
  groups,
  unread,
  problems,
  workers,
  handlers,
  mailbox,
  lately,
  recentEvents,
  batches,
}: OverviewProps) => {
  const stuck = groups.reduce((sum, { count }) => sum + count, 0)
  const reasons = [
    ...problems,
    ...(counted.trouble ? [counted.trouble] : []),
    ...new Set([...counted.unread, ...unread]),
    ...(workers === 0 ? ['No worker runs.'] : []),
  ]
  const isCounted = counted.isWhole
  const isWell = isCounted && reasons.length === 0 && stuck === 0
  return (
    <Layout title="Overview" current="/" hasGraphs isLive={isCounted ? 'slowly' : 'soon'} viewer={viewer}>
      <p class={isWell ? 'well' : isCounted || stuck > 0 || reasons.length > 0 ? 'bad' : ''} role="status">
        {stuck > 0
          ? `${grouped(stuck)} ${stuck === 1 ? 'document does' : 'documents do'} not go on.`
          : isWell
            ? 'All is well.'
            : isCounted || reasons.length > 0
              ? 'Not all is well.'
              : 'Counting the documents.'}
      </p>
      {reasons.length > 0 && <Sentences of={reasons} />}
      {batches.length > 0 && <UnderWay batches={batches} />}
      {groups.length > 0 && <Stuck groups={groups} viewer={viewer} />}
      <Lately {...lately} />
      {recentEvents.length > 0 && <Happened recentEvents={recentEvents} />}
      <Databases counted={counted} handlers={handlers} />
      {mailbox && (
        <p>
          No mail leaves this machine: <a href={mailbox}>the mails that were caught</a>.
        </p>
      )}
      {viewer.mayAct && (
        <form method="post" action="/canary">
          <button class="quiet">Send a canary</button> a document that goes the whole way, and is deleted
        </form>
      )}
    </Layout>
  )
}

const Happened = ({ recentEvents }: Pick<OverviewProps, 'recentEvents'>) => (
  <section>
    <h2 id="happened">Since you look, in this worker</h2>
    <ol class="timeline">
      {recentEvents.map(({ at, text, path }) => (
        <li>
          <Time at={at} />
          {path === undefined ? (
            <Text of={text} />
          ) : (
            <a href={path}>
              <Text of={text} />
            </a>
          )}
        </li>
      ))}
    </ol>
  </section>
)

/** In place of every page while CouchDB does not answer: it says who may see them. */
export const Away = ({ problems }: Pick<OverviewProps, 'problems'>) => (
  <Layout title="CouchDB does not answer" isLive="slowly" viewer={undefined}>
    <p class="bad" role="status">
      Nothing can be shown, and nothing is handled, until it does. The sidecar goes on by itself then; nothing is lost.
    </p>
    <Sentences of={problems} />
    <p>Look at CouchDB: does it run, and is it reached from here?</p>
  </Layout>
)

interface CanaryProps {
  readonly viewer: Viewer
  readonly result: CanaryResult
}

/** How a document fared that was sent the whole way. */
export const Canary = ({ viewer, result }: CanaryProps) => (
  <Layout title="Canary" viewer={viewer}>
    {result.kind === 'arrived' ? (
      <p class="well" role="status">
        It has arrived: <Text of={`${Math.round(result.ms)} ms, by ${result.worker}`} />.
      </p>
    ) : (
      <>
        <p class="bad" role="status">
          It has not arrived.
        </p>
        <Sentences of={result.reasons} />
      </>
    )}
    <p>
      <a href="/">To the overview</a>
    </p>
  </Layout>
)

const filterOf = ({ databases, type, state, status, code }: StuckGroup) => ({
  db: databases,
  type,
  state,
  status,
  code,
})

const Stuck = ({ groups, viewer }: { readonly groups: readonly StuckGroup[]; readonly viewer: Viewer }) => (
  <section>
    <h2 id="stuck">What does not go on</h2>
    <Table labelledby="stuck" columns={['Documents', 'Handler', 'In', 'How', 'Since', 'Why', '']}>
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

/** So many are listed; of more, the sums. */
const MOST_LISTED = 50

const Databases = ({ counted, handlers }: Pick<OverviewProps, 'counted' | 'handlers'>) => {
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
      <p>
        {!counted.isWhole
          ? `${grouped(databases.length)} of ${grouped(total)} databases are counted so far.`
          : `In ${grouped(total)} ${total === 1 ? 'database' : 'databases'}${total <= MOST_LISTED ? `: ${databases.map(({ name }) => name).join(', ')}` : ''}.`}
      </p>
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

/** A schedule's type has a slash of its own. */
const split = (name: string) => [name.slice(0, name.lastIndexOf('/')), name.slice(name.lastIndexOf('/') + 1)] as const
