/** What came of an order, or how far it is. */
import { backFrom, subjectOf, TITLES, type Order, type Sums, type Verb } from './actions.tsx'
import type { Batch } from './batches.ts'
import { grouped, Hidden, Layout, Text, Time, type Viewer } from './layout.tsx'

const DONE: Readonly<Record<Verb, string>> = {
  retry: 'brought back',
  discard: 'discarded',
  undo: 'stand as before',
  pause: 'paused',
  resume: 'resumed',
  set: 'set',
  mail: 'mail is asked for',
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
  /** Undefined where this worker knows nothing of it. */
  readonly batch: Batch | undefined
}

const BATCH_TITLES: Readonly<Record<Batch['status'], string>> = {
  running: 'Under way',
  done: 'Done',
  stopped: 'Stopped',
  broken: 'Broken off',
}

/** How far an order is that means many documents. */
export const BatchPage = ({ viewer, batch }: BatchProps) => {
  if (!batch) {
    return (
      <Layout title="Unknown" viewer={viewer}>
        <p class="bad">
          This worker knows nothing of it: it was started since, or another one serves the page. What was written is
          written, and the same order goes on with the rest.
        </p>
        <p>
          <a href="/">To the overview</a>
        </p>
      </Layout>
    )
  }
  const { id, order, status, sums, most, at, by } = batch
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
      </p>
      {isRunning && <Progress {...{ id, sums, most, viewer }} />}
      <Outcome {...{ order, sums, isRunning }} />
      {(status === 'stopped' || status === 'broken') && (
        <p>What is written stays. The same order goes on with the rest.</p>
      )}
      <p>
        <a href={backFrom(order)}>Go back</a> or <a href="/">to the overview</a>
        {isRunning && '; it goes on without this page.'}
      </p>
    </Layout>
  )
}

const Progress = ({ id, sums, most, viewer }: Pick<Batch, 'id' | 'sums' | 'most'> & { readonly viewer: Viewer }) => {
  const seen = sums.done + sums.changed + sums.refused
  return (
    <>
      <p>
        <progress max={Math.max(most, seen)} value={seen} aria-label="How far it is" /> {grouped(seen)} of{' '}
        {grouped(Math.max(most, seen))}
      </p>
      <noscript>
        <p>
          <a href={batchPath(id)}>Look again</a>
        </p>
      </noscript>
      {viewer.mayAct && (
        <form method="post" action="/batch/stop">
          <Hidden values={{ id }} />
          <button class="quiet">Stop</button>
        </form>
      )}
    </>
  )
}

export const batchPath = (id: string): string => `/batch?id=${encodeURIComponent(id)}`

/** One line for each that is under way. */
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
    {changed > 0 && <p>{grouped(changed)} changed meanwhile, and are left as they are now.</p>}
    {refused > 0 && <p class="bad">{grouped(refused)} were refused by the database.</p>}
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
