import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { Backoff } from '../core/backoff.ts'
import type { Rate } from '../core/rate-limit.ts'
import type { Duration } from '../core/duration.ts'
import type { Failure } from '../core/errors.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import type { Events } from '../events/channels.ts'
import type { Registry } from '../workers/registry.ts'
import type { Mail } from './mail.ts'

/**
 * Glossary.
 *
 * entry    one arrival of a document in a state. It begins when the document is written in that state without a
 *          `docstate` for it. It ends when the document leaves the state, is marked handled, or fails for good.
 * claim    the right to run an unsafe handler on an entry, won by an MVCC write on the document.
 * lease    after this time without a renewal, another worker may take over a claim. Each worker uses its own clock.
 * lost     an entry whose claim was not renewed for a full lease: its worker died or was cut off.
 * begun    stated by a claim before the handler is called. A lost entry that has not begun has had no effect.
 * parked   a lost entry whose handler had begun. It waits for an operator, since its effect may have happened.
 */

export type Mode = 'safe' | 'unsafe'

export interface Claim {
  /** Name of the worker (`SIDECAR_NAME`). */
  readonly worker: string
  /** Identifies the claim of one process; unique across all processes. */
  readonly token: string
  /** Time of the claim or its last renewal. For operators only: no decision compares it with another clock. */
  readonly at: string
  readonly lease_ms: number
  /** `false`: the handler has not begun. Otherwise it may have begun; earlier versions do not write this field. */
  readonly begun?: boolean
  /** Version of the handler. */
  readonly version?: string
}

/** A discard by an operator, and the data to undo it. */
export interface Discarded {
  readonly at: string
  readonly by: string
  /** The other fields of `docstate` before the discard, if the document was not in `error`. */
  readonly before?: Partial<Docstate>
}

/**
 * The engine's own field, `docstate`, on a document that is being handled, waits for a retry, or has failed. It applies
 * to the state named in it. In any other state it is a remnant and is ignored.
 */
export interface Docstate {
  readonly state: string
  /** The revision with which the entry began. With the id and the state it is the stable part of `ctx.key`. */
  readonly entry?: string
  /** Name of the state when the entry began, if it was renamed since: this keeps `ctx.key` stable. */
  readonly entered_in?: string
  readonly claim?: Claim
  /** Number of failed attempts. */
  readonly attempts?: number
  /** Time of the first failed attempt. */
  readonly failing_since?: string
  /** Workers lost while the handler ran. Since then the document is isolated: one such document runs at a time. */
  readonly lost?: number
  readonly failure?: Failure & { readonly at: string; readonly version?: string }
  /** Earliest time of the next attempt. */
  readonly retry_at?: string
  /** Time at which the machine's timeout moves the document on. */
  readonly timeout_at?: string
  /** Set if a worker was lost while the handler ran: an operator decides (`couchdb-sidecar retry`). */
  readonly parked?: { readonly at: string; readonly reason: string }
  /** Time at which the handler finished with this entry, although the document stays in the state. */
  readonly handled?: string
  /** On a deleted leaf: a write beside another worker's, which its worker took back. */
  readonly yielded?: boolean
  /** On a deleted leaf: its content is merged into another leaf (`resolve.ts`). */
  readonly merged?: boolean
  /** Conflicting revisions that are merged into this one. The engine's next write drops the field. */
  readonly merges?: readonly string[]
  /** In `error`: the state in which the document failed. `retry` brings it back to this state. */
  readonly failed_in?: string
  /** In `error`: set if an operator discarded the document (`couchdb-sidecar discard`). */
  readonly discarded?: Discarded
  /** Set if an operator retried the document (`couchdb-sidecar retry`). The engine's next write drops the field. */
  readonly retried?: { readonly at: string; readonly by: string }
  /** Set if an operator put the document into this state. The engine's next write drops the field. */
  readonly asked?: { readonly at: string; readonly by: string }
  /** Effects that happened (Message-IDs), so that a later attempt does not repeat them. */
  readonly done?: readonly string[]
  /** Results of the handler's steps (`ctx.once`), by step name. */
  readonly steps?: Steps
}

/** Results of steps, as JSON. */
export type Steps = Readonly<Record<string, unknown>>

/** Options of a handler. `docs/handler-options.md` is generated from this interface. */
export interface HandlerOptions<D extends object = Doc> {
  /**
   * Maximum duration of a run, such as `90s`, `30m` or `24h`. After that, `ctx.signal` aborts, and the attempt fails
   * with the code `timeout`. A run that still continues is logged. Its result is ignored, and it delays no document.
   *
   * @default '5m'
   */
  readonly timeout?: Duration
  /**
   * Maximum concurrent runs of this handler in each process.
   *
   * @default 32
   */
  readonly concurrency?: number
  /**
   * Maximum concurrent runs of this handler on all workers together. Each worker has a share. While a worker joins or
   * leaves, the total may be off by one.
   *
   * @default undefined
   */
  readonly globalConcurrency?: number
  /**
   * Returns the key of a document. Documents of one database with the same key run one at a time, on all workers, in no
   * certain order. A document with the key `undefined` waits for no other. If the function throws, the document goes to
   * `error`.
   *
   * @default undefined
   */
  readonly key?: (doc: D & StoredDoc) => string | number | undefined
  /**
   * Rate limit: at most `count` runs begin in each `per`, such as `1m`, on all workers and in all databases together.
   * They begin at even distances. A waiting document uses up no attempt, and delays no other handler.
   *
   * @default undefined
   */
  readonly limit?: { readonly count: number; readonly per: Duration }
  /**
   * Number of failed attempts after which the document goes to `error`. With the default `backoff`, 20 attempts last
   * about a day.
   *
   * @default 20
   */
  readonly attempts?: number
  /**
   * Wait between two attempts, in milliseconds: `baseMs` at first, then twice as long each time, up to `capMs`. Up to a
   * quarter is added at random. A handler that knows a better time throws `RetryLater`.
   *
   * @default { baseMs: 1000, capMs: 14_400_000 }
   */
  readonly backoff?: Partial<Backoff>
  /**
   * What happens to the document if its worker is lost while the handler runs. Unsafe handlers only. With `'park'`, an
   * operator must decide. With `'retry'`, the handler runs again with the same `ctx.key`.
   *
   * @default 'park'
   */
  readonly onLost?: 'park' | 'retry'
  /**
   * From 0 (first) to 9 (last). While documents of this handler wait for `concurrency`, each handler with a higher
   * number gets at most what this handler leaves of 32 concurrent runs in this process, and at least one.
   *
   * @default 5
   */
  readonly priority?: number
  /**
   * `'now'` ignores documents that were already in the state when the first worker got this handler. Documents that
   * enter the state later, or change in it, are handled.
   *
   * @default 'beginning'
   */
  readonly since?: 'beginning' | 'now'
  /**
   * Tries the handler out, alone or beside another handler for the same state. A shadow handler runs on real documents,
   * but its results, saves, puts, mails and attachments are withheld. They only appear in the log, in the metrics and in
   * the event `handler:withheld`. All other calls, such as `fetch`, take effect: check `ctx.isShadow` before them. The
   * handler runs once each time a document enters the state, and once more after a restart of the worker. If documents
   * arrive too fast, some are skipped. Only the options `timeout` and `concurrency` apply.
   *
   * @default false
   */
  readonly shadow?: boolean
  /**
   * Version of the handler's code, such as the name of a release. Claims and failures contain the version, so you see
   * which code ran.
   *
   * @default undefined
   */
  readonly version?: string
}

/** The options of a handler with all defaults applied. Times in milliseconds. */
export interface ResolvedOptions extends Required<
  Pick<HandlerOptions, 'concurrency' | 'attempts' | 'onLost' | 'priority' | 'since' | 'shadow'>
> {
  readonly backoff: Backoff
  readonly timeoutMs: number
  readonly globalConcurrency?: number | undefined
  readonly key?: HandlerOptions['key']
  readonly limit?: Rate | undefined
  readonly version?: string | undefined
}

/** The second argument of a handler, after the document. */
export interface Context {
  /** Name of the document's database. */
  readonly database: string
  /** The same in every attempt of one entry, and unique to it: give it to the mail or payment provider. */
  readonly key: string
  /** Number of this attempt; 1 for the first. */
  readonly attempt: number
  /**
   * Aborts when the timeout is over, the claim is lost, or the sidecar stops: start no further effect then. It also
   * aborts when the handler has ended. Pass it to all that you wait for: `fetch(url, { signal: ctx.signal })`.
   */
  readonly signal: AbortSignal
  /** True if the effects of this run through the context are withheld (`shadow`): leave out other effects. */
  readonly isShadow: boolean
  readonly log: Logger
  readonly mail: Mail
  /** Workers of a role: list them, register, or subscribe to changes. Pass `ctx.signal` to end with the handler. */
  readonly workers: Registry
  /** Events of the sidecar, and channels of your own. Pass `ctx.signal` to end with the handler. */
  readonly events: Events
  /**
   * Saves the document before the handler ends, and returns it as stored. A save in another state ends the entry: later
   * results and errors of the handler are ignored. Throws if the claim is lost.
   */
  save<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** Another document of the same database; `undefined` if it does not exist. */
  find(id: string): Promise<StoredDoc | undefined>
  /** Writes another document of the same database. Throws `CouchError` with code `conflict` if it has changed. */
  put<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** Another database of the same server. */
  db(name: string): OtherDatabase
  /** An attachment of the document, as a stream; `undefined` if it does not exist. Throws `CouchError`. */
  attachment(name: string): Promise<Attachment | undefined>
  /**
   * Stores an attachment in the document, or replaces the one of that name, and keeps the claim. The attachment stays:
   * the handler's result does not remove it. Throws if the claim is lost, `Reject` if CouchDB refuses the attachment,
   * and the errors of the stream.
   *
   * @param type MIME type, default `application/octet-stream`
   * @example
   * const answer = await fetch(photo.url, { signal: ctx.signal })
   * await ctx.attach('photo.jpg', answer.body!, 'image/jpeg')
   */
  attach(name: string, body: AttachmentBody, type?: string): Promise<void>
  /**
   * Runs a step at most once for this entry, as far as this can be known. The result is saved in the document before
   * `once` returns it. A later attempt gets the result without running the step again. The outcome is unknown only if
   * the worker or the save is lost after the effect. An unsafe handler's document is then parked, or retried with the
   * same key.
   *
   * @param name of the step, up to 100 characters; each name has its own result
   * @param step gets a key for the API that it calls, the same in every attempt; its result must be JSON
   * @example
   * const charge = await ctx.once('charge', (key) => stripe.charges.create(order.total, { idempotencyKey: key }))
   */
  once<T>(name: string, step: (key: string) => T | Promise<T>): Promise<T>
}

export interface Attachment {
  /** MIME type. */
  readonly type: string
  /** Read it before the handler ends. Fails with `CouchError`. */
  readonly body: Readable
}

/**
 * Text, bytes or a stream, also of `fetch`. A stream above a megabyte is sent only once: a failure fails the attempt.
 */
export type AttachmentBody = string | Uint8Array | AsyncIterable<Uint8Array | string>

/** Another database of the server, for handlers. */
export interface OtherDatabase {
  readonly name: string
  /** A document; `undefined` if the document or the database does not exist. Throws `CouchError`. */
  find(id: string): Promise<StoredDoc | undefined>
  /** Writes a document. Throws `CouchError`: `conflict` if it has changed, `not_found` without such a database. */
  put<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** An attachment, as a stream; `undefined` if the attachment or the document does not exist. Throws `CouchError`. */
  attachment(id: string, name: string): Promise<Attachment | undefined>
}

export type Handler = (doc: StoredDoc, ctx: Context) => Promise<Doc | void>

/** One row of the dispatch table. */
export interface Registration {
  readonly type: string
  readonly state: string
  readonly mode: Mode
  readonly handler: Handler
  readonly options: ResolvedOptions
  /** Made from the machine: `timeout` moves documents on after their time, `rename` into the state's new name. */
  readonly byMachine?: 'timeout' | 'rename'
}

/** Outcome of one run, a closed union: one function makes it from the run, one turns it into a document. */
export type Outcome =
  | { readonly kind: 'next'; readonly doc: Doc }
  | { readonly kind: 'nothing' } // returned nothing: saved by the handler, or done without leaving the state
  | {
      readonly kind: 'failed'
      readonly failure: Failure
      readonly stack: string | undefined
      /** Time of the next attempt, or milliseconds until then. Undefined: after the handler's backoff. */
      readonly again?: Date | number | undefined
    }
  | { readonly kind: 'rejected'; readonly failure: Failure }
  | { readonly kind: 'claim-lost' } // another worker has the document now; this run's knowledge is outdated
  | { readonly kind: 'stopped' } // did not end within the grace period
