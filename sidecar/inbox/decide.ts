/**
 * Decides the outcome of an arrival, without side effects. The guard of the control database decides what may be
 * written, as for any other client without a name. The writer's revisions decide what is new, as in CouchDB. A
 * repetition changes nothing, however often it comes, and in any later state of the document.
 *
 * By replication, a revision that wins over the last one is an update; any other is a repetition. By a plain write, an
 * update names the last revision. A plain write without a revision is the first one, or its repetition.
 */
import validate from '../../ddocs/control/docstate/validate_doc_update.ts'
import { isObject, type Doc } from '../../ddocs/lib/document.ts'
import { controlMachines } from '../../ddocs/machines.ts'
import type { Doc as NewDoc, StoredDoc } from '../couch/documents.ts'
import { normaliseAddress } from '../accounts/owner.ts'
import type { Arrival } from './arrival.ts'
import { contentHash } from './inbox-names.ts'
import { isRevision, nextRevision, winsOver } from './revisions.ts'

export type Decision =
  /** `rev`: the writer's revision. */
  | { readonly kind: 'write'; readonly doc: NewDoc; readonly rev: string }
  | { readonly kind: 'repeated'; readonly rev: string }
  /** The arrival changes a revision that is not the last one. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'refused'; readonly reason: string }

/** @param before the current document, if it exists */
export function decide(arrival: Arrival, before: StoredDoc | undefined): Decision {
  const { id, replicated, by, fields } = arrival
  const last = lastRevision(before)
  const rev = replicated && arrival.rev ? arrival.rev : nextRevision(arrival.rev, contentHash(contentOf(arrival)))
  if (rev === last) return { kind: 'repeated', rev }
  if (replicated && last !== undefined && !winsOver(rev, last)) return { kind: 'repeated', rev }
  if (!replicated && arrival.rev !== last) return { kind: 'conflict' }

  const doc: NewDoc = before ? { ...asLeft(before), ...asWritten(fields, before) } : { ...fields, _id: id }
  const reason = refusalOf(doc, before)
  return reason === undefined
    ? { kind: 'write', doc: { ...doc, inbox: { rev, by } }, rev }
    : { kind: 'refused', reason }
}

/** The writer's last revision; undefined without one, or if an admin has written another value. */
export function lastRevision(before: StoredDoc | undefined): string | undefined {
  const { rev } = isObject(before?.inbox) ? before.inbox : {}
  return isRevision(rev) ? rev : undefined
}

/** The content to hash: the fields in one order, and the revision that they change. */
const contentOf = ({ rev, fields }: Arrival): unknown => [
  rev ?? null,
  Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1)),
]

/** The document without the fields of the state that it leaves: a new state begins. */
function asLeft({ docstate: _docstate, error: _error, ...rest }: StoredDoc): StoredDoc {
  return rest
}

/** Keeps the normalised owner that the sidecar wrote: the device continues to send its own spelling. */
function asWritten(fields: Arrival['fields'], { owner }: StoredDoc): Arrival['fields'] {
  const isSame = typeof fields.owner === 'string' && normaliseAddress(fields.owner) === owner
  return isSame ? { ...fields, owner } : fields
}

/** Why the guard refuses this write to a client without a name; undefined if it accepts the write. */
function refusalOf(doc: Doc, before: Doc | undefined): string | undefined {
  try {
    validate.call({ machines: controlMachines }, doc, before ?? null, { db: '', name: null, roles: [] })
    return undefined
  } catch (thrown) {
    const { forbidden } = thrown as { readonly forbidden?: unknown }
    if (typeof forbidden === 'string') return forbidden
    throw thrown
  }
}
