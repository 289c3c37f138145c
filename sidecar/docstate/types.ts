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
 * The words of the house.
 *
 * entry    one arrival of a document in a state. It begins when the document is written in that state without a
 *          `docstate` field for it, and ends when it leaves, is marked handled, or fails for good.
 * claim    the right to run an unsafe handler on an entry, won by an MVCC write on the document.
 * lease    how long a claim is believed without a renewal. Judged by the watcher's own clock.
 * lost     an entry whose claim was not renewed for a whole lease: its worker died or was cut off.
 * begun    said by a claim before the handler is called: of any other lost entry nothing has happened.
 * parked   a lost entry whose handler had begun: it waits for a person, because it is unknown whether its effect happened.
 */

export type Mode = 'safe' | 'unsafe'

export interface Claim {
  /** Name of the worker (`SIDECAR_NAME`). */
  readonly worker: string
  /** Identifies the claim of one process: no other has the same. */
  readonly token: string
  /** When it was won or last renewed. For people: no decision compares it with another clock. */
  readonly at: string
  readonly lease_ms: number
  /** `false`: the handler has not begun. Otherwise it may have, as of any claim of an earlier version. */
  readonly begun?: boolean
  /** Of the handler. */
  readonly version?: string
}

/** What a person did, and how to take it back. */
export interface Discarded {
  readonly at: string
  readonly by: string
  /** How it stood, where it was not in `error`: what else was in its `docstate`. */
  readonly before?: Partial<Docstate>
}

/**
 * The engine's own field, `docstate`, on a document that is being handled, waits for another try, or went wrong. It
 * speaks of the state named in it; in any other state it is a remnant and counts for nothing.
 */
export interface Docstate {
  readonly state: string
  /** The revision with which the entry began: with the id and the state, the stable part of `ctx.key`. */
  readonly entry?: string
  /** What the state was called when the entry began, if it has been renamed since: so the key stays. */
  readonly entered_in?: string
  readonly claim?: Claim
  /** Tries that failed. */
  readonly attempts?: number
  /** When the first of them did. */
  readonly failing_since?: string
  /** Workers that were lost while its handler ran: since then it runs by itself, one such document at a time. */
  readonly lost?: number
  readonly failure?: Failure & { readonly at: string; readonly version?: string }
  /** Not before this time: the next try. */
  readonly retry_at?: string
  /** When the machine's timeout moves the document on. */
  readonly timeout_at?: string
  /** A worker was lost in the middle; an operator decides (`couchdb-sidecar retry`). */
  readonly parked?: { readonly at: string; readonly reason: string }
  /** The handler is done with this entry although the document stays in the state. */
  readonly handled?: string
  /** Of a deleted leaf: a write beside another worker's, taken back. */
  readonly yielded?: boolean
  /** Of a deleted leaf: what stood in it is in another one (`resolve.ts`). */
  readonly merged?: boolean
  /** Revisions that stood beside this one and are in it. The next write of the engine drops it. */
  readonly merges?: readonly string[]
  /** In `error`: the state in which it failed, to which `retry` brings it back. */
  readonly failed_in?: string
  /** In `error` by a person (`couchdb-sidecar discard`). */
  readonly discarded?: Discarded
  /** Brought back by a person (`couchdb-sidecar retry`). The next write of the engine drops it. */
  readonly retried?: { readonly at: string; readonly by: string }
  /** Put into this state by a person. The next write of the engine drops it. */
  readonly asked?: { readonly at: string; readonly by: string }
  /** Effects that were seen to happen (Message-IDs), so that another try does not repeat them. */
  readonly done?: readonly string[]
  /** What came of the steps of its handler (`ctx.once`), by their names. */
  readonly steps?: Steps
}

/** Results of steps, as JSON. */
export type Steps = Readonly<Record<string, unknown>>

/** How a handler runs. `docs/handler-options.md` is made from this. */
export interface HandlerOptions<D extends object = Doc> {
  /**
   * How long a run may last, such as `90s`, `30m` or `24h`. Then `ctx.signal` aborts, and the try has failed with the code
   * `timeout`. What the run still does counts for nothing, and holds up no other document; the log names it.
   *
   * @default '5m'
   */
  readonly timeout?: Duration
  /**
   * How many documents of this handler run at the same time in this process.
   *
   * @default 32
   */
  readonly concurrency?: number
  /**
   * How many run at the same time in all workers together. Each has its part, so that a worker that comes or goes may
   * make it one more or less for a moment.
   *
   * @default undefined
   */
  readonly globalConcurrency?: number
  /**
   * Documents of one database for which this returns the same text run one after the other, in all workers together, in no
   * certain order. `undefined`: the document waits for no other. What it throws puts the document into `error`.
   *
   * @default undefined
   */
  readonly key?: (doc: D & StoredDoc) => string | number | undefined
  /**
   * At most `count` runs begin in each `per`, such as `1m`, in all workers and databases together, evenly apart. Waiting costs no
   * try, and takes no turn of another handler.
   *
   * @default undefined
   */
  readonly limit?: { readonly count: number; readonly per: Duration }
  /**
   * Tries before the document goes to `error`. With the default `backoff` they last a day.
   *
   * @default 20
   */
  readonly attempts?: number
  /**
   * Wait between two tries, in milliseconds: doubles from `baseMs` to `capMs`, and up to a quarter more at random. A handler
   * that knows better throws `RetryLater`.
   *
   * @default { baseMs: 1000, capMs: 14_400_000 }
   */
  readonly backoff?: Partial<Backoff>
  /**
   * Unsafe handlers only. What becomes of a document whose worker was lost while its handler ran: `'park'` leaves it to a
   * person, `'retry'` runs it again with the same `ctx.key`.
   *
   * @default 'park'
   */
  readonly onLost?: 'park' | 'retry'
  /**
   * From 0 to 9, the lower the sooner. While documents of a handler wait for their turn, those with higher numbers get what it
   * leaves of 32 runs at once in this process, and at least one.
   *
   * @default 5
   */
  readonly priority?: number
  /**
   * `'now'` leaves alone what was in the state before the first worker had this handler. What is written in the state later, and
   * what is changed in it, is new.
   *
   * @default 'beginning'
   */
  readonly since?: 'beginning' | 'now'
  /**
   * Tries the handler out, alone or beside another one for the same state: it runs on documents as they come, but what it
   * returns, saves, puts and mails is withheld, and only told in the log, in the metrics and by the event `handler:withheld`. What it
   * calls by itself happens, unless it looks at `ctx.isShadow`. It runs once for an entry, unless the worker is
   * started again, and not for what comes too fast. Of the other options `timeout` and `concurrency` hold.
   *
   * @default false
   */
  readonly shadow?: boolean
  /**
   * Of the handler's code, such as the name of a release: it stands in claims and failures, which so tell which code was it.
   *
   * @default undefined
   */
  readonly version?: string
}

/** The options of a handler, each with its value. Times in milliseconds. */
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

/** What a handler gets beside the document. */
export interface Context {
  /** Name of the database that the document is in. */
  readonly database: string
  /** The same for every try of one entry, and for no other: give it to the mail or payment provider. */
  readonly key: string
  /** 1 for the first try. */
  readonly attempt: number
  /**
   * Aborts when its time is up, the claim is lost, or the sidecar stops: start no further effect then. And when the
   * handler has ended. Give it to all that you wait for: `fetch(url, { signal: ctx.signal })`.
   */
  readonly signal: AbortSignal
  /** What this run does through the context is withheld (`shadow`): leave out other effects. */
  readonly isShadow: boolean
  readonly log: Logger
  readonly mail: Mail
  /** Who is there in a role; to register, and to be told of changes: with `ctx.signal` until the handler ends. */
  readonly workers: Registry
  /** What the sidecar tells of its own life, and channels of your own: with `ctx.signal` until the handler ends. */
  readonly events: Events
  /**
   * Saves the document itself before the handler ends; returns it as stored. In another state that ends the entry: what
   * the handler returns or throws afterwards counts for nothing. Throws if the claim is lost.
   */
  save<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** Another document of the same database; `undefined` if it is not there. */
  find(id: string): Promise<StoredDoc | undefined>
  /** Writes another document of the same database. Throws `CouchError` with code `conflict` if it has changed. */
  put<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** Another database of the same server. */
  db(name: string): OtherDatabase
  /** An attachment of the document, as a stream; `undefined` if it has none of that name. Throws `CouchError`. */
  attachment(name: string): Promise<Attachment | undefined>
  /**
   * Attaches to the document, in place of what it has of that name, and keeps the claim. What was attached stays attached: what the
   * handler returns takes nothing of it away. Throws if the claim is lost, `Reject` if CouchDB refuses it, and what the stream throws.
   *
   * @param type MIME, default `application/octet-stream`
   * @example
   * const answer = await fetch(photo.url, { signal: ctx.signal })
   * await ctx.attach('photo.jpg', answer.body!, 'image/jpeg')
   */
  attach(name: string, body: AttachmentBody, type?: string): Promise<void>
  /**
   * Runs a step at most once for this entry, as far as anyone can know: what it returns is saved in the document before it is
   * returned here, and a later try gets it without running the step again. Only where a worker is lost, or the save, between the effect
   * and its save, it is not known: then an unsafe handler's document is parked, or tried again with the same key.
   *
   * @param name of the step, up to 100 characters: another one has another result
   * @param step gets a key that is the same on every try, for the API that it calls; what it returns has to be JSON
   * @example
   * const charge = await ctx.once('charge', (key) => stripe.charges.create(order.total, { idempotencyKey: key }))
   */
  once<T>(name: string, step: (key: string) => T | Promise<T>): Promise<T>
}

export interface Attachment {
  /** MIME. */
  readonly type: string
  /** Read it before the handler ends. Breaks off with `CouchError`. */
  readonly body: Readable
}

/** Streams, also those of `fetch`. One of more than a megabyte that CouchDB does not take at once fails the try. */
export type AttachmentBody = string | Uint8Array | AsyncIterable<Uint8Array | string>

/** A database beside the one that the document is in, for handlers. */
export interface OtherDatabase {
  readonly name: string
  /** `undefined` if it is not there, or the database is not. Throws `CouchError`. */
  find(id: string): Promise<StoredDoc | undefined>
  /** Throws `CouchError`: with code `conflict` if it has changed, with `not_found` where there is no such database. */
  put<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** As a stream; `undefined` if the document has none of that name, or is not there. Throws `CouchError`. */
  attachment(id: string, name: string): Promise<Attachment | undefined>
}

export type Handler = (doc: StoredDoc, ctx: Context) => Promise<Doc | void>

/** One line of the dispatch table. */
export interface Registration {
  readonly type: string
  readonly state: string
  readonly mode: Mode
  readonly handler: Handler
  readonly options: ResolvedOptions
  /** Made from the machine: moves on what has been in the state for its time, or brings it to the state's name of now. */
  readonly byMachine?: 'timeout' | 'rename'
}

/** What came of one run, closed: one function makes it from the run, one turns it into a document. */
export type Outcome =
  | { readonly kind: 'next'; readonly doc: Doc }
  | { readonly kind: 'nothing' } // returned nothing: saved by itself, or done without leaving the state
  | {
      readonly kind: 'failed'
      readonly failure: Failure
      readonly stack: string | undefined
      /** When to try again: at this time, or so many milliseconds from now. Undefined: after the handler's backoff. */
      readonly again?: Date | number | undefined
    }
  | { readonly kind: 'rejected'; readonly failure: Failure }
  | { readonly kind: 'claim-lost' } // another worker has the document now; what we know no longer counts
  | { readonly kind: 'stopped' } // did not end within the grace period
