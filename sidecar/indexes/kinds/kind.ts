import type { Couch } from '../../couch/client.ts'
import type { Index } from '../indexes-of.ts'

/** How far an index is. */
export interface Progress {
  /** The place in the database that it has reached; a number, as `changes` in `Reading`. */
  readonly seq: number
  /** In changes. */
  readonly lag: number
  /** Whether it is being built, by whomever. */
  readonly isRunning: boolean
}

/** What CouchDB offers for indexes of one kind. All throw `CouchError`. */
export interface Kind {
  /** False where the server does not say how far an index is. */
  readonly tells?: boolean
  /**
   * There are several copies, and where the database is may be the word of one that is itself behind: an index is asked
   * before it is believed to be fresh.
   */
  readonly hasCopies?: boolean
  /** A build begins: what its copies lack when it is read next is what it is to bring. */
  begin?(index: Index): void
  /** @param target where the database is */
  read(index: Index, target: number, signal: AbortSignal): Promise<Progress>
  /** Has it built. The caller makes sure that no other call does: each may leave one waiting on the server. */
  build(index: Index, target: number, signal: AbortSignal): Promise<void>
  /** As a query would: throws what goes wrong in the building. */
  ask(index: Index, signal: AbortSignal): Promise<void>
}

/** The same server twice. */
export interface Servers {
  /** For what is answered at once. */
  readonly quick: Couch
  /** For what waits for a build. */
  readonly patient: Couch
}
