import { isObject } from '../../ddocs/lib/document.ts'
import type { Status } from '../../ddocs/lib/status.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { printable } from '../core/visible.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Explained } from '../databases/explain-document.ts'
import { standingOf, type Standing } from '../docstate/operator/standing.ts'
import { failureLike, type RecentFailure } from '../docstate/recent-failures.ts'
import type { HistoryDoc } from '../history/history-doc.ts'
import {
  documentPath,
  grouped,
  Json,
  Layout,
  listPath,
  RetryOrDiscard,
  Sentences,
  Table,
  Text,
  Time,
  type Viewer,
} from './layout.tsx'

interface DocumentProps {
  readonly viewer: Viewer
  readonly database: string
  readonly doc: StoredDoc | undefined
  /** The other leaf revisions. */
  readonly conflicts: readonly StoredDoc[]
  readonly explained: Explained
  /** The failures of all workers that have a stack. */
  readonly failures: readonly FailureShown[]
  /** Whether personal data is visible. */
  readonly isShown: boolean
}

/** Documents of these statuses have the buttons Retry and Discard. */
const MENDED: readonly Status[] = [...STUCK, 'discarded']

/** Fields of CouchDB and of the sidecar: they hold no personal data. */
const OPEN = new Set(['type', 'state', 'docstate', 'error'])

const hidden = (fields: object): Record<string, unknown> =>
  Object.fromEntries(Object.keys(fields).map((key) => [key, '…']))

/** Hides the values of the user's fields, and the results of steps. */
function masked(doc: StoredDoc): Record<string, unknown> {
  const { docstate } = doc
  const steps = isObject(docstate) && isObject(docstate.steps) ? { steps: hidden(docstate.steps) } : {}
  const open = Object.fromEntries(Object.entries(doc).filter(([key]) => key.startsWith('_') || OPEN.has(key)))
  return { ...hidden(doc), ...open, ...(isObject(docstate) && { docstate: { ...docstate, ...steps } }) }
}

export const DocumentPage = ({ viewer, database, doc, conflicts, explained, failures, isShown }: DocumentProps) => {
  const id = doc?._id
  const hasStanding = doc !== undefined && typeof doc.type === 'string' && typeof doc.state === 'string'
  const standing = hasStanding ? standingOf(doc) : undefined
  const status = standing?.status
  return (
    <Layout title="Document" isLive={isShown ? undefined : 'slowly'} viewer={viewer}>
      <p>
        <Text of={id ?? 'No such document'} /> in <a href={listPath({ db: database })}>{<Text of={database} />}</a>
        {status && <span class={`status ${status}`}>{status}</span>}
      </p>
      {viewer.mayAct && id !== undefined && status !== undefined && MENDED.includes(status) && (
        <RetryOrDiscard values={{ db: database, id }} mayDiscard={status !== 'discarded'} />
      )}
      <section>
        <h2 id="what">Status</h2>
        <Sentences of={explained.sentences} />
      </section>
      {standing?.code !== undefined && <Stack {...{ database, standing, code: standing.code, failures }} />}
      {explained.history.length > 0 && (
        <section>
          <h2 id="before">History</h2>
          <Timeline entries={explained.history} />
        </section>
      )}
      {doc && conflicts.length > 0 && <Conflicts revisions={[doc, ...conflicts]} isShown={isShown} />}
      {doc && (
        <section>
          <h2 id="json">JSON</h2>
          {!isShown && (
            <form method="post" action={documentPath(database, doc._id)}>
              <p>Your own fields are hidden, as they may hold personal data. The log records who shows them.</p>
              <button class="quiet">Show the fields</button>
            </form>
          )}
          <Json of={isShown ? doc : masked(doc)} />
        </section>
      )}
    </Layout>
  )
}

/** A failure with its stack. */
export type FailureShown = RecentFailure & {
  /** Worker whose handler failed; undefined: this one. */
  readonly worker?: string
}

interface StackProps {
  readonly database: string
  readonly standing: Standing
  /** Code of the document's failure. */
  readonly code: string
  readonly failures: readonly FailureShown[]
}

/** Shows the stack of the last failure, or of one alike. Only workers know stacks: documents replicate to clients. */
const Stack = ({ database, standing: { id, type, handledIn: state }, code, failures }: StackProps) => {
  const found = failureLike(failures, { database, id, type, state, code })
  return (
    <section>
      <h2 id="stack">Stack</h2>
      {found === undefined ? (
        <p>No running worker has a stack of this failure. The log of the worker that ran the handler may have it.</p>
      ) : (
        <>
          <p>
            {found.id === id && found.database === database ? (
              'Of this document'
            ) : (
              <>
                Of <a href={documentPath(found.database, found.id)}>{<Text of={found.id} />}</a>, with the same handler
                and code
              </>
            )}
            , <Time at={found.at} />
            {found.worker !== undefined && (
              <>
                , on worker <Text of={found.worker} />
              </>
            )}
          </p>
          <pre tabindex={0} role="region" aria-labelledby="stack">
            {printable(found.stack)}
          </pre>
        </>
      )}
    </section>
  )
}

/** Shows the history, oldest first. */
const Timeline = ({ entries }: { readonly entries: readonly HistoryDoc[] }) => (
  <ol class="timeline">
    {entries.map(({ at, from, to, by, worker, ms, failed_tries: tries, failure, version }) => (
      <li class={failure ? 'broken' : undefined}>
        <Time at={at} />
        <strong>
          <Text of={from === to ? `${from}, handled` : `${from} → ${to}`} />
        </strong>
        <span>
          <Text
            of={[
              by === 'time' ? 'timeout' : `${worker}, ${grouped(ms)} ms`,
              ...(version === undefined ? [] : [`version ${version}`]),
              ...(tries === 0 ? [] : [`after ${tries} failed ${tries === 1 ? 'attempt' : 'attempts'}`]),
            ].join(', ')}
          />
        </span>
        {failure && <Text of={`${failure.code}: ${failure.reason}`} />}
      </li>
    ))}
  </ol>
)

interface ConflictsProps {
  /** The winning revision first. */
  readonly revisions: readonly StoredDoc[]
  readonly isShown: boolean
}

/** Shows the fields in which the leaf revisions differ. */
const Conflicts = ({ revisions, isShown }: ConflictsProps) => {
  const seen = isShown ? revisions : revisions.map(masked)
  const names = [...new Set(revisions.flatMap((doc) => Object.keys(doc)))].filter((name) => !name.startsWith('_'))
  const differing = names.filter((name) => new Set(revisions.map((doc) => JSON.stringify(doc[name]))).size > 1)
  return (
    <section>
      <h2 id="conflicts">Conflicting revisions</h2>
      <p>
        CouchDB shows the first one. A handler or a resolver may merge them; otherwise write one revision and delete the
        others.
      </p>
      <Table labelledby="conflicts" columns={['Field', ...revisions.map(({ _rev }) => _rev)]}>
        {differing.map((name) => (
          <tr>
            <th scope="row">
              <Text of={name} />
            </th>
            {seen.map((doc) => (
              <td>
                {(doc as Record<string, unknown>)[name] === undefined ? (
                  '–'
                ) : (
                  <Text of={JSON.stringify((doc as Record<string, unknown>)[name])} />
                )}
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {differing.length === 0 && <p>Their fields are the same.</p>}
    </section>
  )
}
