import { quote, type Doc } from '../../ddocs/lib/document.ts'
import { secretFaults, textFaults } from '../../ddocs/lib/shape.ts'
import { inboxIdOf } from './inbox-names.ts'
import { isRevision } from './revisions.ts'

/** A document as a client sends it. It has an id; all other fields are unchecked. */
export interface Sent {
  readonly doc: Readonly<Record<string, unknown>>
  /** Sent by replication (`new_edits: false`): `_rev` is the document's own revision, not the one that it changes. */
  readonly replicated: boolean
  /** The sender: a keyed hash of the client's address. */
  readonly by: string
}

/** A document with a valid id, revision and secret hash. */
export interface Arrival {
  /** Id in the control database. */
  readonly id: string
  readonly rev: string | undefined
  readonly replicated: boolean
  readonly by: string
  /** The writer's fields, without CouchDB's own. Ids are those of the control database. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** The arrival, or the faults of the document as a sentence. */
export function arrivalOf({ doc, replicated, by }: Sent): Arrival | string {
  const { _id, _rev, _revisions, _conflicts, ...fields } = doc
  const faults = [...idFaults(doc), ...revFaults(_rev, replicated), ...ownerFaults(fields)]
  if (faults.length > 0) return faults.join('; ')
  if (!isStorable(fields, DEPTH)) return `expected well-formed Unicode, and values nested ${DEPTH} deep at most`

  const secret = fields.secret_sha256 as string
  const { device_id: device } = fields
  const ours = typeof device === 'string' ? { ...fields, device_id: inboxIdOf(secret, device) } : fields
  return { id: inboxIdOf(secret, _id as string), rev: _rev as string | undefined, replicated, by, fields: ours }
}

const idFaults = (doc: Doc): string[] =>
  typeof doc._id === 'string' && doc._id.startsWith('_')
    ? [`_id: expected the id of a document, which does not begin with _, got ${quote(doc._id)}`]
    : textFaults(doc, '_id', 200)

const revFaults = (rev: unknown, replicated: boolean): string[] =>
  isRevision(rev) || (rev === undefined && !replicated)
    ? []
    : [`_rev: expected a revision such as 1-0123abcd, got ${quote(rev)}`]

const ownerFaults = (fields: Doc): string[] =>
  fields.secret_sha256 === undefined
    ? ['secret_sha256: expected the SHA-256 of a secret of your own; the secret lets you read the status later']
    : secretFaults(fields)

/** Maximum nesting of values. Documents of the machines are two deep. */
const DEPTH = 8

/** CouchDB refuses lone surrogates, and cannot store values that are nested too deeply. */
function isStorable(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return !/\p{Cs}/u.test(value)
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.entries(value).every(([key, inner]) => isStorable(key, 0) && isStorable(inner, depth - 1))
}
