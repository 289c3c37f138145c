/**
 * The words in which a state machine over documents is declared. One table says which states a type of document has,
 * which of them the sidecar handles and how, who may write each transition, and what happens when no one does for too
 * long. From it follow the types of the handlers, the `validate_doc_update` that guards the database, the view of
 * documents by state, and the diagrams in the docs. The table itself is pushed inside the design document.
 */

/**
 * Who may write a transition. `sidecar`: the sidecar alone (and server admins, who may do anything). `owner`: the
 * device or user that the document belongs to. `client`: every user that may write into the database.
 */
export type Writer = 'sidecar' | 'owner' | 'client'

export interface State {
  /** Set where a handler runs: `safe` may run twice by accident, `unsafe` first wins the document. */
  readonly mode?: 'safe' | 'unsafe'
  /** Who may create a document in this state. Default: the sidecar. */
  readonly create?: Writer
  /** The states that may follow, each with who may write it. A handled state may always fail into `error`. */
  readonly next?: Readonly<Record<string, Writer>>
  /** Where the sidecar moves a document by time. */
  readonly timeout?: Timeout
  /**
   * What the state is called now, and nothing else: the sidecar renames documents that are in it, and such as arrive. Who may
   * write them is said there.
   */
  readonly renamed?: string
}

/**
 * When a state ends by itself, and what follows: after so many milliseconds, or at the time that stands in a field of the
 * document (ISO 8601 with its zone, such as `2026-11-26T12:00:00Z`).
 */
export type Timeout =
  { readonly afterMs: number; readonly next: string } | { readonly at: string; readonly next: string }

/** The states of one type of document, by name. */
export type Machine = Readonly<Record<string, State>>

/** The machines of a database, by `doc.type`. */
export type Machines = Readonly<Record<string, Machine>>

/** The states that have kept their names. */
type Present<States> = { [S in keyof States]: States[S] extends { readonly renamed: string } ? never : S }[keyof States]

/** Holds a table against itself: each state named as a target is declared. */
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
 * Declares machines, with their exact types kept for the handlers.
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

/** The states that a handler of `S` may return: those the table lets the sidecar write next, or `S` itself. */
export type NextState<M extends Machines, T extends keyof M, S extends keyof M[T]> =
  | (M[T][S] extends { readonly next: infer N }
      ? { [K in keyof N]: N[K] extends 'sidecar' ? K : never }[keyof N] & string
      : never)
  | (S & string)
