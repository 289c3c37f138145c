/**
 * What becomes of an arrival, decided without side effects. What may be written, the guard of the control database says,
 * as it does to any other client without a name. What is new, the writer's revisions say, as in CouchDB: a repetition
 * changes nothing, however often it comes and whatever became of the document since.
 *
 * By replication, a revision that does not win over the last one is a repetition; one that does is an update. By a plain
 * write, an update names the last revision; what names none is the beginning, or its repetition.
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
  /** `rev`: as the writer counts. */
  | { readonly kind: 'write'; readonly doc: NewDoc; readonly rev: string }
  | { readonly kind: 'repeated'; readonly rev: string }
  /** It changes a revision that is not the last one. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'refused'; readonly reason: string }

/** @param before the document as it is now, if there is one */
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

/** Undefined also where an admin has put something else there. */
export function lastRevision(before: StoredDoc | undefined): string | undefined {
  const { rev } = isObject(before?.inbox) ? before.inbox : {}
  return isRevision(rev) ? rev : undefined
}

/** In one order, and with what it changes. */
const contentOf = ({ rev, fields }: Arrival): unknown => [
  rev ?? null,
  Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1)),
]

/** Without what is said of the state that it leaves: a new one begins. */
function asLeft({ docstate: _docstate, error: _error, ...rest }: StoredDoc): StoredDoc {
  return rest
}

/** The sidecar has written the owner's address in its one spelling; the device goes on with its own. */
function asWritten(fields: Arrival['fields'], { owner }: StoredDoc): Arrival['fields'] {
  const isSame = typeof fields.owner === 'string' && normaliseAddress(fields.owner) === owner
  return isSame ? { ...fields, owner } : fields
}

/** Why the guard refuses this to a client without a name; undefined if it does not. */
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
