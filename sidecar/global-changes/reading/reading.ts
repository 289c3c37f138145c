import type { Seq } from '../../couch/documents.ts'
import type { Update } from './update.ts'

/** Rows for one viewer, one after the other. */
export interface Reading {
  /** From here nothing is lost of what was not handed out yet. */
  readonly lastSeq: Seq
  /** Not all that was there has been handed out. */
  readonly isBehind: boolean
  /**
   * The next rows, so many at the most, perhaps none: while it is behind, some of those that are there; then it waits
   * for new ones. Throws the signal's reason; `CouchError` where nothing can be read, at first; later what may pass is
   * waited for.
   */
  next(most: number, signal: AbortSignal): Promise<readonly Update[]>
  close(): void
}
