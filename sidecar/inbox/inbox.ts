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

/** What came of a document that was sent. `rev` is the writer's. */
export type Received =
  | { readonly kind: 'taken' | 'repeated'; readonly rev: string }
  | Exclude<Decision, { readonly kind: 'write' | 'repeated' }>
  /** Too many devices wait to be confirmed, or too many that he has sent; what is there already may still be changed. */
  | { readonly kind: 'full' }

/**
 * Where clients without credentials leave documents in the control database. Write-only: of what is there no client
 * learns anything but the status of his own, by the secret whose hash he wrote with it.
 */
export interface Inbox {
  /**
   * Sending the same again changes nothing. Throws `CouchError`.
   *
   * @param hasShare asked of a new device where room is scarce: whether he who sends it may have some (`Room`)
   */
  receive(sent: Sent, hasShare: () => boolean): Promise<Received>
  /** Undefined if there is no such document of this secret. Throws `CouchError`. */
  status(id: string, secret: string, options?: CallOptions): Promise<Status | undefined>
}

export interface InboxOptions {
  /** The control database. */
  readonly database: Database
  /** Of the owner of an active device; undefined while it is being made. Throws `CouchError`. */
  readonly homeOf: (owner: string, options: CallOptions) => Promise<Home | undefined>
  /** How many devices may wait to be confirmed. */
  readonly limit: number
  readonly clock: Clock
  /** Kept up to date. */
  readonly counts: InboxCounts
  readonly log: Logger
}

/** Others write the same document: the sidecar, and the same writer twice at once. */
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

/** What the writer of a document may know of it. */
interface Status {
  readonly _id: string
  /** The writer's last one that was taken in: to be named by the next. */
  readonly _rev?: string | undefined
  readonly type: unknown
  readonly state: unknown
  /** Without the reason: a mail server may say there which addresses it knows. */
  readonly error?: { readonly code: unknown; readonly at: unknown } | undefined
  /** The device's own CouchDB user, once it has one. */
  readonly user?: unknown
  /** The control database of its user, once that is there: its name and its address. */
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
