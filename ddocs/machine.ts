/**
 * Types to declare a state machine over documents. One table lists the states of a document type, their handler modes,
 * the writer of each transition, and the timeouts. Four results follow from the table: the types of the handlers,
 * `validate_doc_update`, the view of documents by state, and the diagrams in the docs. The deploy puts the table into
 * the design document.
 */

/**
 * Who may write a transition. `sidecar`: the sidecar alone (and server admins, who may do anything). `owner`: the
 * device or user that the document belongs to. `client`: every user that may write into the database.
 */
export type Writer = 'sidecar' | 'owner' | 'client'

export interface State {
  /** Set if the state has a handler: `safe` may run twice by accident, `unsafe` first claims the document. */
  readonly mode?: 'safe' | 'unsafe'
  /** Who may create a document in this state. Default: the sidecar. */
  readonly create?: Writer
  /** The states that may follow, each with its writer. A handled state may always fail into `error`. */
  readonly next?: Readonly<Record<string, Writer>>
  /** Into which state, and when, the sidecar moves the document. */
  readonly timeout?: Timeout
  /**
   * Current name of the state; allows no other field. The sidecar renames documents in this state, and those that
   * arrive later. The state of that name says who may write them.
   */
  readonly renamed?: string
}

/**
 * When a state ends by itself, and which state follows. It ends `afterMs` milliseconds later, or at the time in the
 * document's field `at` (ISO 8601 with a zone, such as `2026-11-26T12:00:00Z`).
 */
export type Timeout =
  { readonly afterMs: number; readonly next: string } | { readonly at: string; readonly next: string }

/** The states of one type of document, by name. */
export type Machine = Readonly<Record<string, State>>

/** The machines of a database, by `doc.type`. */
export type Machines = Readonly<Record<string, Machine>>

/** The states that are not renamed. */
type Present<States> = { [S in keyof States]: States[S] extends { readonly renamed: string } ? never : S }[keyof States]

/** Checks that a table declares each target state. */
type Closed<M> = {
  readonly [T in keyof M]: {
    readonly [S in keyof M[T]]: {
      readonly next?: M[T][S] extends { readonly next: infer N }
        ? { readonly [K in keyof N]: K extends Present<M[T]> ? Writer : never }
        : never
      readonly timeout?: { readonly next: Present<M[T]> }
      readonly renamed?: Present<M[T]>
    }
  }
}

/**
 * Declares machines, and keeps their exact types for the handlers.
 *
 * @example
 * export const machines = defineMachines({
 *   order: {
 *     paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar' } },
 *     invoiced: {},
 *     error: { next: { paid: 'client' } },
 *   },
 * })
 */
export const defineMachines = <const M extends Machines>(machines: M & Closed<M>): M => machines

/** The states of type `T` that have a handler of this mode. */
export type HandledState<M extends Machines, T extends keyof M, Mode> = {
  [S in keyof M[T]]: M[T][S] extends { readonly mode: Mode } ? S : never
}[keyof M[T]] &
  string

/** The states that a handler of `S` may return: those that the sidecar may write next, or `S` itself. */
export type NextState<M extends Machines, T extends keyof M, S extends keyof M[T]> =
  | (M[T][S] extends { readonly next: infer N }
      ? { [K in keyof N]: N[K] extends 'sidecar' ? K : never }[keyof N] & string
      : never)
  | (S & string)
