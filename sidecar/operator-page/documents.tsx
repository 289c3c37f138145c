import { STATUSES } from '../../ddocs/lib/status.ts'
import { isUpperBound, type DocumentFilter } from './document-filter.ts'
import type { Listing, Row } from './list-documents.ts'
import {
  documentPath,
  grouped,
  Layout,
  listPath,
  RetryOrDiscard,
  Sentences,
  Table,
  Text,
  Time,
  type Viewer,
} from './layout.tsx'

interface DocumentsProps {
  readonly viewer: Viewer
  readonly filter: DocumentFilter
  readonly listing: Listing
  /** Maximum number of documents that match the filter (`isUpperBound`). */
  readonly total: number
}

export const Documents = ({ viewer, filter, listing, total }: DocumentsProps) => {
  const { rows, next, unread } = listing
  return (
    <Layout
      title="Documents"
      isLive={filter.after === undefined ? 'slowly' : undefined}
      current="/documents"
      viewer={viewer}
    >
      <search>
        <form method="get" action="/documents" class="filter">
          <Field name="db" label="Database or glob" value={filter.db} />
          <Field name="type" label="Type" value={filter.type} />
          <Field name="state" label="State" value={filter.state} />
          <div>
            <label for="status">Status</label>
            <select id="status" name="status">
              <option value="">stuck (failed, parked, retry)</option>
              {STATUSES.map((status) => (
                <option value={status} selected={status === filter.status}>
                  {status}
                </option>
              ))}
            </select>
          </div>
          <Field name="code" label="Failure code" value={filter.code} />
          <Field
            name="older"
            label="Older than (30m, 2h)"
            value={filter.older}
            pattern="\s*\d{1,9}\s*(ms|[smhdSMHD])\s*"
          />
          <button>Show</button>
        </form>
        <form method="get" action="/documents" class="filter">
          <Field name="db" id="of" label="Database or glob" value={filter.db} />
          <Field name="id" label="Id or prefix" value={filter.id} required />
          <button>Search</button>
        </form>
      </search>
      <p role="status">{inWords(filter, listing, total)}</p>
      {unread.length > 0 && <Sentences of={unread} />}
      {viewer.mayAct && rows.length > 0 && filter.id === undefined && (
        <RetryOrDiscard values={{ ...filter, after: undefined }} what="all that match" />
      )}
      {rows.length > 0 && <List rows={rows} />}
      {next !== undefined && (
        <p>
          <a href={listPath({ ...filter, after: next })}>Next page</a>
        </p>
      )}
    </Layout>
  )
}

function inWords(filter: DocumentFilter, { rows, next, isCut }: Listing, total: number): string {
  const { id, after } = filter
  const count = rows.length
  if (count === 0 && isCut)
    return 'No match among the documents that were searched. Narrow the filter to search others.'
  if (count === 0) return id === undefined ? 'No document matches.' : 'No document has such an id.'
  const shown = `${grouped(count)} ${count === 1 ? 'document' : 'documents'}`
  if (id !== undefined) return isCut ? `The first ${shown}. Type a longer prefix to see others.` : `${shown}.`
  const of = isUpperBound(filter) ? 'of at most' : 'of'
  if (after !== undefined) return `${grouped(count)} more, ${of} ${grouped(Math.max(total, count))} documents.`
  return next === undefined
    ? `${shown}.`
    : `The first ${grouped(count)} ${of} ${grouped(Math.max(total, count + 1))} documents.`
}

interface FieldProps {
  readonly name: string
  readonly id?: string
  readonly label: string
  readonly value: string | undefined
  readonly required?: boolean
  /** The `pattern` attribute of HTML. */
  readonly pattern?: string
}

const Field = ({ name, id = name, label, value, required, pattern }: FieldProps) => (
  <div>
    <label for={id}>{label}</label>
    <input id={id} name={name} value={value ?? ''} required={required} pattern={pattern} />
  </div>
)

const List = ({ rows }: { readonly rows: readonly Row[] }) => (
  <Table label="Documents" columns={['Document', 'Database', 'Handler', 'Status', 'Since', 'Next attempt', 'Reason']}>
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
