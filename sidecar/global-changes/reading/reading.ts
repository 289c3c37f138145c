import type { Seq } from '../../couch/documents.ts'
import type { Update } from './update.ts'

/** Rows for one viewer, in order. */
export interface Reading {
  /** Sequence to resume from: every row that was not handed out follows it. */
  readonly lastSeq: Seq
  /** Whether existing rows are not handed out yet. */
  readonly isBehind: boolean
  /**
   * The next rows, at most `most`, perhaps none. While it is behind, it returns existing rows; then it waits for new
   * ones. Throws the signal's reason. Throws `CouchError` if the first read fails; later reads wait until the fault is
   * over.
   */
  next(most: number, signal: AbortSignal): Promise<readonly Update[]>
  close(): void
}
