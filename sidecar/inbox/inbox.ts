import type { Logger } from 'pino'
import type { Home } from '../accounts/accounts.ts'
import type { Clock } from '../core/clock.ts'
import type { CallOptions, Database } from '../couch/database.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import { arrivalOf, type Sent } from './arrival.ts'
import type { InboxCounts } from './inbox-metrics.ts'
import { decide, type Decision, lastRevision } from './decide.ts'
import { hashOfSecret, inboxIdOf } from './inbox-names.ts'
import { createCapacity, type StrangersType } from './capacity.ts'
import { isObject } from '../../ddocs/lib/document.ts'
import type { StoredDoc } from '../couch/documents.ts'

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
