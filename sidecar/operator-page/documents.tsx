import { isObject } from '../../ddocs/lib/document.ts'
import { STATUSES, type Status } from '../../ddocs/lib/status.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Explained } from '../databases/explain-document.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { standingOf } from '../docstate/operator/standing.ts'
import type { Listing, Row } from './list-documents.ts'
import type { HistoryDoc } from '../history/history-doc.ts'
import {
  documentPath,
  grouped,
  Json,
  Layout,
  Sentences,
  listPath,
  RetryOrDiscard,
  Table,
  Text,
  Time,
  type Viewer,
} from './layout.tsx'

/** What the list is asked for; every text may be anything. */
export interface Asked {
  readonly db?: string | undefined
  readonly type?: string | undefined
  readonly state?: string | undefined
  readonly status?: string | undefined
  readonly code?: string | undefined
  /** What ids begin with: then nothing else but the database counts. */
  readonly id?: string | undefined
  /** Of an earlier page. */
  readonly after?: string | undefined
}

interface DocumentsProps {
  readonly viewer: Viewer
  readonly asked: Asked
  readonly listing: Listing
  /** How many the filter means. */
  readonly total: number
}

export const isStatus = (text: string | undefined): text is Status =>
  (STATUSES as readonly string[]).includes(text ?? '')

export const Documents = ({ viewer, asked, listing, total }: DocumentsProps) => {
  const { rows, next, unread } = listing
  return (
    <Layout
      title="Documents"
      isLive={asked.after === undefined ? 'slowly' : undefined}
      current="/documents"
      viewer={viewer}
    >
      <search>
        <form method="get" action="/documents" class="filter">
          <Field name="db" label="Database (name or glob)" value={asked.db} />
          <Field name="type" label="Type" value={asked.type} />
          <Field name="state" label="State" value={asked.state} />
          <div>
            <label for="status">How it stands</label>
            <select id="status" name="status">
              <option value="">stuck (failed, parked, retry)</option>
              {STATUSES.map((status) => (
                <option value={status} selected={status === asked.status}>
                  {status}
                </option>
              ))}
            </select>
          </div>
          <Field name="code" label="Code of the failure" value={asked.code} />
          <button>Show</button>
        </form>
        <form method="get" action="/documents" class="filter">
          <Field name="db" id="of" label="Database (name or glob)" value={asked.db} />
          <Field name="id" label="Id, or what it begins with" value={asked.id} required />
          <button>Search</button>
        </form>
      </search>
      <p role="status">{inWords(asked, listing, total)}</p>
      {unread.length > 0 && <Sentences of={unread} />}
      {viewer.mayAct && rows.length > 0 && asked.id === undefined && (
        <RetryOrDiscard values={{ ...asked, after: undefined }} what="all that the filter means" />
      )}
      {rows.length > 0 && <List rows={rows} />}
      {next !== undefined && (
        <p>
          <a href={listPath({ ...asked, after: next })}>Go on</a>
        </p>
      )}
    </Layout>
  )
}

function inWords({ id, after }: Asked, { rows, next, isCut }: Listing, total: number): string {
  const count = rows.length
  if (count === 0 && isCut) return 'None of those that were looked at; a narrower filter finds others.'
  if (count === 0) return id === undefined ? 'No document stands so.' : 'No document has such an id.'
  const shown = `${grouped(count)} ${count === 1 ? 'document' : 'documents'}`
  if (id !== undefined) return isCut ? `The first ${shown}; a longer id finds others.` : `${shown}.`
  if (after !== undefined) return `${grouped(count)} more, of ${grouped(Math.max(total, count))} documents.`
  return next === undefined
    ? `${shown}.`
    : `The first ${grouped(count)} of ${grouped(Math.max(total, count + 1))} documents.`
}

interface FieldProps {
  readonly name: string
  readonly id?: string
  readonly label: string
  readonly value: string | undefined
  readonly required?: boolean
}

const Field = ({ name, id = name, label, value, required }: FieldProps) => (
  <div>
    <label for={id}>{label}</label>
    <input id={id} name={name} value={value ?? ''} required={required} />
  </div>
)

const List = ({ rows }: { readonly rows: readonly Row[] }) => (
  <Table label="Documents" columns={['Document', 'In', 'Handler', 'How', 'Since', 'Next', 'Why']}>
    {rows.map(({ database, id, type, handledIn, status, since, nextAt, code, reason }) => (
      <tr>
        <th scope="row">
          <a href={documentPath(database, id)}>
            <Text of={id} />
          </a>
        </th>
        <td>
          <Text of={database} />
        </td>
        <td>
          <Text of={`${type}/${handledIn}`} />
        </td>
        <td>
          <span class={`status ${status}`}>{status}</span>
        </td>
        <td>
          <Time at={since} />
        </td>
        <td>
          <Time at={nextAt} />
        </td>
        <td class="text">
          <Text of={[code, reason].filter(Boolean).join(': ')} />
        </td>
      </tr>
    ))}
  </Table>
)

interface DocumentProps {
  readonly viewer: Viewer
  readonly database: string
  readonly doc: StoredDoc | undefined
  /** Its other last revisions. */
  readonly conflicts: readonly StoredDoc[]
  readonly explained: Explained
  /** Whether personal data is shown as it is. */
  readonly isShown: boolean
}

/** How documents stand that a click brings on. */
const MENDED: readonly Status[] = [...STUCK, 'discarded']

/** Of CouchDB and of the sidecar: no person's. */
const OPEN = new Set(['type', 'state', 'docstate', 'error'])

const hidden = (fields: object): Record<string, unknown> =>
  Object.fromEntries(Object.keys(fields).map((key) => [key, '…']))

/** The fields as they are, and what stands in those of the user hidden, also what their handlers have kept of steps. */
function masked(doc: StoredDoc): Record<string, unknown> {
  const { docstate } = doc
  const steps = isObject(docstate) && isObject(docstate.steps) ? { steps: hidden(docstate.steps) } : {}
  const open = Object.fromEntries(Object.entries(doc).filter(([key]) => key.startsWith('_') || OPEN.has(key)))
  return { ...hidden(doc), ...open, ...(isObject(docstate) && { docstate: { ...docstate, ...steps } }) }
}

export const DocumentPage = ({ viewer, database, doc, conflicts, explained, isShown }: DocumentProps) => {
  const id = doc?._id
  const hasStanding = doc !== undefined && typeof doc.type === 'string' && typeof doc.state === 'string'
  const status = hasStanding ? standingOf(doc).status : undefined
  return (
    <Layout title="Document" isLive={isShown ? undefined : 'slowly'} viewer={viewer}>
      <p>
        <Text of={id ?? 'It is not there.'} /> in <a href={listPath({ db: database })}>{<Text of={database} />}</a>
        {status && <span class={`status ${status}`}>{status}</span>}
      </p>
      {viewer.mayAct && id !== undefined && status !== undefined && MENDED.includes(status) && (
        <RetryOrDiscard values={{ db: database, id }} mayDiscard={status !== 'discarded'} />
      )}
      <section>
        <h2 id="what">What happens to it</h2>
        <Sentences of={explained.sentences} />
      </section>
      {explained.history.length > 0 && (
        <section>
          <h2 id="before">What came before</h2>
          <Timeline entries={explained.history} />
        </section>
      )}
      {doc && conflicts.length > 0 && <Conflicts revisions={[doc, ...conflicts]} isShown={isShown} />}
      {doc && (
        <section>
          <h2 id="json">JSON</h2>
          {!isShown && (
            <form method="post" action={documentPath(database, doc._id)}>
              <p>The fields of your own are hidden: they may be a person's. Who shows them stands in the log.</p>
              <button class="quiet">Show them</button>
            </form>
          )}
          <Json of={isShown ? doc : masked(doc)} />
        </section>
      )}
    </Layout>
  )
}

/** The oldest first. */
const Timeline = ({ entries }: { readonly entries: readonly HistoryDoc[] }) => (
  <ol class="timeline">
    {entries.map(({ at, from, to, by, worker, ms, failed_tries: tries, failure, version }) => (
      <li class={failure ? 'broken' : undefined}>
        <Time at={at} />
        <strong>
          <Text of={from === to ? `${from}, done` : `${from} → ${to}`} />
        </strong>
        <span>
          <Text
            of={[
              by === 'time' ? 'by its time' : `${worker}, ${grouped(ms)} ms`,
              ...(version === undefined ? [] : [`version ${version}`]),
              ...(tries === 0 ? [] : [`after ${tries} failed ${tries === 1 ? 'try' : 'tries'}`]),
            ].join(', ')}
          />
        </span>
        {failure && <Text of={`${failure.code}: ${failure.reason}`} />}
      </li>
    ))}
  </ol>
)

interface ConflictsProps {
  /** The one that CouchDB shows first. */
  readonly revisions: readonly StoredDoc[]
  readonly isShown: boolean
}

/** What differs between the last revisions of a document. */
const Conflicts = ({ revisions, isShown }: ConflictsProps) => {
  const seen = isShown ? revisions : revisions.map(masked)
  const names = [...new Set(revisions.flatMap((doc) => Object.keys(doc)))].filter((name) => !name.startsWith('_'))
  const differing = names.filter((name) => new Set(revisions.map((doc) => JSON.stringify(doc[name]))).size > 1)
  return (
    <section>
      <h2 id="conflicts">Conflicting revisions</h2>
      <p>
        CouchDB shows the first. Where a handler or a resolver joins them it does so by itself; otherwise write one and
        delete the others.
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
      {differing.length === 0 && <p>They differ in their revisions alone.</p>}
    </section>
  )
}
