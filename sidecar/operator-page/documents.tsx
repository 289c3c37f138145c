import { isObject } from '../../ddocs/lib/document.ts'
import { STATUSES, type Status } from '../../ddocs/lib/status.ts'
import type { StoredDoc } from '../couch/documents.ts'
import type { Explained } from '../databases/explain-document.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { standingOf, type Standing } from '../docstate/operator/standing.ts'
import { historyLine } from '../history/read-history.ts'
import {
  documentPath,
  grouped,
  Json,
  Layout,
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
}

export interface Row extends Standing {
  readonly database: string
}

interface DocumentsProps {
  readonly viewer: Viewer
  readonly asked: Asked
  readonly rows: readonly Row[]
  /** Whether there are more. */
  readonly hasMore: boolean
}

/** Of more documents than that the first are shown. */
export const SHOWN = 100

export const isStatus = (text: string | undefined): text is Status =>
  (STATUSES as readonly string[]).includes(text ?? '')

export const Documents = ({ viewer, asked, rows, hasMore }: DocumentsProps) => (
  <Layout title="Documents" isLive="slowly" current="/documents" viewer={viewer}>
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
      <form method="get" action="/document" class="filter">
        <Field name="db" id="of" label="Database" value={asked.db} required />
        <Field name="id" label="Id of a document" value={undefined} required />
        <button>Open</button>
      </form>
    </search>
    <p role="status">
      {rows.length === 0
        ? hasMore
          ? 'None of the first documents that stand so; a narrower filter finds others.'
          : 'No document stands so.'
        : hasMore
          ? `The first ${grouped(rows.length)}; a narrower filter shows others.`
          : `${grouped(rows.length)} ${rows.length === 1 ? 'document' : 'documents'}.`}
    </p>
    {viewer.mayAct && rows.length > 0 && <RetryOrDiscard values={{ ...asked }} what="all that the filter means" />}
    {rows.length > 0 && <List rows={rows} />}
  </Layout>
)

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
        <td>
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

export const DocumentPage = ({ viewer, database, doc, explained, isShown }: DocumentProps) => {
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
        <ul>
          {explained.sentences.map((sentence) => (
            <li>
              <Text of={sentence} />
            </li>
          ))}
        </ul>
      </section>
      {explained.history.length > 0 && (
        <section>
          <h2 id="before">What came before</h2>
          <ol>
            {explained.history.map((entry) => (
              <li>
                <Text of={historyLine(entry)} />
              </li>
            ))}
          </ol>
        </section>
      )}
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
