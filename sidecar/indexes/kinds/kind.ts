import type { Couch } from '../../couch/client.ts'
import type { Index } from '../indexes-of.ts'

/** Progress of an index. */
export interface Progress {
  /** Position in the database that the index has reached; a number like `changes` in `Reading`. */
  readonly seq: number
  /** Changes that the index lacks. */
  readonly lag: number
  /** Whether a build runs, started by any client. */
  readonly isRunning: boolean
}

/** Operations on indexes of one kind. All throw `CouchError`. */
export interface Kind {
  /** False if the server does not report the progress of an index. */
  readonly reportsProgress?: boolean
  /**
   * The database has several copies, and its position may come from a stale one. So the index is read before it counts
   * as up to date.
   */
  readonly hasCopies?: boolean
  /** Marks the start of a build. Its goal is what the copies lack at the next `read`. */
  begin?(index: Index): void
  /** @param target position of the database */
  read(index: Index, target: number, signal: AbortSignal): Promise<Progress>
  /** Has the server build the index. Callers avoid concurrent calls: each may leave a request waiting on the server. */
  build(index: Index, target: number, signal: AbortSignal): Promise<void>
  /** Queries the index as a client does. Throws the error of a failed build. */
  query(index: Index, signal: AbortSignal): Promise<void>
}

/** Two clients of the same server. */
export interface Servers {
  /** For requests that the server answers at once. */
  readonly quick: Couch
  /** For requests that wait for a build. */
  readonly patient: Couch
}
