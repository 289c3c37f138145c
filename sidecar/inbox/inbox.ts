import type { Logger } from 'pino'
import validate from '../../ddocs/control/docstate/validate_doc_update.ts'
import { isObject, type Doc } from '../../ddocs/lib/document.ts'
import { controlMachines } from '../../ddocs/machines.ts'
import type { Home } from '../accounts/accounts.ts'
import { normaliseAddress } from '../accounts/owner.ts'
import type { Clock } from '../core/clock.ts'
import type { CallOptions, Database } from '../couch/database.ts'
import type { Doc as NewDoc, StoredDoc } from '../couch/documents.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import { arrivalOf, type Arrival, type Sent } from './arrival.ts'
import type { InboxCounts } from './inbox-metrics.ts'
import { contentHash, hashOfSecret, inboxIdOf } from './inbox-names.ts'
import { isRevision, nextRevision, winsOver } from './revisions.ts'
import { createCapacity, type StrangersType } from './capacity.ts'

/** Outcome of a sent document. `rev` is the writer's revision. */
export type Received =
  | { readonly kind: 'taken' | 'repeated'; readonly rev: string }
  | Exclude<Decision, { readonly kind: 'write' | 'repeated' }>
  /** Too many devices wait for confirmation, in all or of this sender. Existing documents may still be changed. */
  | { readonly kind: 'full' }

/**
 * Accepts documents of clients without credentials into the control database. The inbox is write-only: a client can
 * read only the status of its own documents. It needs the secret whose hash it sent with them.
 */
export interface Inbox {
  /**
   * Accepts a document. Sending the same document again changes nothing. Throws `CouchError`.
   *
   * @param hasShare called for a new document if room is scarce: whether its sender may take some (`Capacity`)
   */
  receive(sent: Sent, hasShare: () => boolean): Promise<Received>
  /** Status of a document; undefined if no such document has this secret. Throws `CouchError`. */
  status(id: string, secret: string, options?: CallOptions): Promise<Status | undefined>
}

export interface InboxOptions {
  /** The control database. */
  readonly database: Database
  /** Control database of an active device's owner; undefined while it is being made. Throws `CouchError`. */
  readonly homeOf: (owner: string, options: CallOptions) => Promise<Home | undefined>
  /** Maximum number of devices that wait for confirmation. */
  readonly limit: number
  readonly clock: Clock
  /** Counters that the inbox increments. */
  readonly counts: InboxCounts
  readonly log: Logger
}

/** Maximum tries of a write: the sidecar, or the same client twice at once, may write the same document. */
const TRIES = 10

export function createInbox({ database, homeOf, limit, clock, counts, log }: InboxOptions): Inbox {
  const room = createCapacity({ database, limit, clock, log })

  async function receive(sent: Sent, hasShare: () => boolean): Promise<Received> {
    const arrival = arrivalOf(sent)
    if (typeof arrival === 'string') return { kind: 'refused', reason: arrival }
    return repeatOnConflict(TRIES, async () => {
      const before = await database.find(arrival.id)
      const decision = decide(arrival, before)
      if (decision.kind !== 'write') return decision
      if (!before && !(await room.take(decision.doc.type as StrangersType, hasShare))) return { kind: 'full' }
      await database.put(decision.doc)
      return { kind: 'taken', rev: decision.rev }
    })
  }

  return {
    async receive(sent, hasShare) {
      const received = await receive(sent, hasShare)
      if (received.kind === 'full') counts.turnedAway.full += 1
      else counts.documents[received.kind] += 1
      return received
    },

    async status(id, secret, options = {}) {
      const hash = hashOfSecret(secret)
      const doc = await database.find(inboxIdOf(hash, id), {}, options)
      if (doc?.secret_sha256 !== hash) return undefined
      const isActive = doc.type === 'device' && doc.state === 'active' && typeof doc.owner === 'string'
      return statusOf(id, doc, isActive ? await homeOf(doc.owner as string, options) : undefined)
    },
  }
}

type Decision =
  /** `rev`: the writer's revision. */
  | { readonly kind: 'write'; readonly doc: NewDoc; readonly rev: string }
  | { readonly kind: 'repeated'; readonly rev: string }
  /** The arrival changes a revision that is not the last one. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'refused'; readonly reason: string }

/**
 * Decides the outcome of an arrival, without side effects. The guard of the control database decides what may be
 * written, as for any other client without a name. The writer's revisions decide what is new, as in CouchDB. A
 * repetition changes nothing, however often it comes, and in any later state of the document.
 *
 * By replication, a revision that wins over the last one is an update; any other is a repetition. By a plain write, an
 * update names the last revision. A plain write without a revision is the first one, or its repetition.
 *
 * @param before the current document, if it exists
 */
function decide(arrival: Arrival, before: StoredDoc | undefined): Decision {
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
function lastRevision(before: StoredDoc | undefined): string | undefined {
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

/** The fields of a document that its writer may read. */
interface Status {
  readonly _id: string
  /** The writer's last accepted revision. The next write must name it. */
  readonly _rev?: string | undefined
  readonly type: unknown
  readonly state: unknown
  /** Without the reason: it may quote a mail server that reveals which addresses exist. */
  readonly error?: { readonly code: unknown; readonly at: unknown } | undefined
  /** The device's own CouchDB user, once it has one. */
  readonly user?: unknown
  /** Name of the user's control database, once the database exists. `syncpoint` is its URL. */
  readonly database?: string
  readonly syncpoint?: string
}

/** @param id as the writer knows it */
function statusOf(id: string, doc: StoredDoc, home?: Home): Status {
  const { type, state, user, error } = doc
  return {
    _id: id,
    _rev: lastRevision(doc),
    type,
    state,
    ...(state === 'error' && isObject(error) && { error: { code: error.code, at: error.at } }),
    ...(type === 'device' && { user, ...home }),
  }
}
