/** The result of an order, or its progress. */
import { backFrom, subjectOf, TITLES, type Order, type Sums, type Verb } from './actions.tsx'
import type { Batch } from './batches.ts'
import { grouped, Hidden, Layout, Text, Time, type Viewer } from './layout.tsx'

const DONE: Readonly<Record<Verb, string>> = {
  retry: 'retried',
  discard: 'discarded',
  undo: 'restored',
  pause: 'paused',
  resume: 'resumed',
  set: 'set',
  mail: 'mail requested',
  revoke: 'revoked',
}

interface DoneProps {
  readonly viewer: Viewer
  readonly order: Order
  readonly sums: Sums
}

export const Done = ({ viewer, order, sums }: DoneProps) => (
  <Layout title={sums.done === 0 ? 'Nothing was done' : 'Done'} viewer={viewer}>
    <Outcome {...{ order, sums }} />
    <p>
      <a href={backFrom(order)}>Go back</a> or <a href="/">to the overview</a>
    </p>
  </Layout>
)

interface BatchProps {
  readonly viewer: Viewer
  /** Undefined if no worker has sent it. */
  readonly batch: Batch | undefined
}

const BATCH_TITLES: Readonly<Record<Batch['status'], string>> = {
  running: 'In progress',
  done: 'Done',
  stopped: 'Stopped',
  broken: 'Failed',
}

/** Shows the progress and the result of an order for many documents. */
export const BatchPage = ({ viewer, batch }: BatchProps) => {
  if (!batch) {
    return (
      <Layout title="Unknown order" isLive="soon" viewer={viewer}>
        <p>
          If another worker runs this order, its progress appears here within seconds. If that worker has restarted, the
          order has stopped: the documents written so far stay as they are. Give the same order again for the rest.
        </p>
        <p>
          <a href="/">To the overview</a>
        </p>
      </Layout>
    )
  }
  const { id, order, status, sums, most, at, by, worker, isStopping } = batch
  const isRunning = status === 'running'
  const isNothing = status === 'done' && sums.done === 0
  return (
    <Layout
      title={isNothing ? 'Nothing was done' : BATCH_TITLES[status]}
      isLive={isRunning ? 'soon' : undefined}
      viewer={viewer}
    >
      <p>
        <Text of={`${TITLES[order.verb]}: ${subjectOf(order, most)} By ${by}, since `} />
        <Time at={at} />
        {worker !== undefined && <Text of={`, on worker ${worker}.`} />}
      </p>
      {isRunning && <Progress {...{ id, sums, most, viewer, isStopping }} />}
      <Outcome {...{ order, sums, isRunning }} />
      {(status === 'stopped' || status === 'broken') && (
        <p>Documents written so far stay as they are. Give the same order again for the rest.</p>
      )}
      <p>
        <a href={backFrom(order)}>Go back</a> or <a href="/">to the overview</a>
        {isRunning && '. The order continues without this page.'}
      </p>
    </Layout>
  )
}

interface ProgressProps extends Pick<Batch, 'id' | 'sums' | 'most' | 'isStopping'> {
  readonly viewer: Viewer
}

const Progress = ({ id, sums, most, viewer, isStopping }: ProgressProps) => {
  const seen = sums.done + sums.changed + sums.refused
  return (
    <>
      <p>
        <progress max={Math.max(most, seen)} value={seen} aria-label="Progress" /> {grouped(seen)} of{' '}
        {grouped(Math.max(most, seen))}
      </p>
      <noscript>
        <p>
          <a href={batchPath(id)}>Reload</a>
        </p>
      </noscript>
      {isStopping && <p>Stopping: the worker is notified within seconds.</p>}
      {viewer.mayAct && !isStopping && (
        <form method="post" action="/batch/stop">
          <Hidden values={{ id }} />
          <button class="quiet">Stop</button>
        </form>
      )}
    </>
  )
}

export const batchPath = (id: string): string => `/batch?id=${encodeURIComponent(id)}`

/** Shows the orders in progress, one per line. */
export const UnderWay = ({ batches }: { readonly batches: readonly Batch[] }) => (
  <ul>
    {batches.map(({ id, order, most, sums: { done }, by }) => (
      <li>
        <a href={batchPath(id)}>
          <Text of={`${TITLES[order.verb]}: ${grouped(done)} of ${subjectOf(order, most)} By ${by}.`} />
        </a>
      </li>
    ))}
  </ul>
)

interface OutcomeProps {
  readonly order: Order
  readonly sums: Sums
  readonly isRunning?: boolean
}

const Outcome = ({ order, sums: { done, changed, refused, why, undo }, isRunning = false }: OutcomeProps) => (
  <>
    {done > 0 && (
      <p role="status">
        <Text
          of={'handler' in order ? `${order.handler} is ${DONE[order.verb]}.` : `${grouped(done)} ${DONE[order.verb]}.`}
        />
      </p>
    )}
    {changed > 0 && <p>{grouped(changed)} changed in the meantime and were left as they are.</p>}
    {refused > 0 && <p class="bad">{grouped(refused)} were refused by CouchDB.</p>}
    {why && (
      <p class="bad">
        <Text of={why} />
      </p>
    )}
    {undo && done > 0 && !isRunning && (
      <form method="get" action="/act">
        <Hidden values={undo} />
        <button class="quiet">Undo</button>
      </form>
    )}
  </>
)
