import { SidecarError } from '../core/errors.ts'
import type { DatabaseReport } from './report.ts'

export type DeployErrorCode =
  | 'ddocs_broken' // does not compile, uses a name that the engine lacks, or failed on a sample
  | 'server_unreachable'
  | 'not_admin'
  | 'no_database'
  | 'server_refused' // CouchDB answered with an error
  | 'stopped' // its signal aborted during the writes
  | 'busy' // another deploy runs in the database
  | 'no_space' // no disk space for a second index beside the current one
  | 'index_failed' // CouchDB cannot build the index
  | 'not_verified' // after the swap, the database's index is not the warmed one
  | 'several' // several databases failed, each with its own error

/** A failed deploy. If some documents were written, the text lists them. */
export class DeployError extends SidecarError {
  override readonly name = 'DeployError'
  declare readonly code: DeployErrorCode
  /** One sentence each, after `file:line:column` if the position is known. */
  readonly faults: readonly string[]
  /** The report of each database, if any of them failed. */
  reports: readonly DatabaseReport[] = []

  constructor(code: DeployErrorCode, faults: readonly string[], options?: ErrorOptions) {
    super(code, faults.join('\n'), options)
    this.faults = faults
  }
}

/** Throws `ddocs_broken` if the list is not empty. */
export function refuseBroken(faults: readonly string[]): void {
  if (faults.length > 0) throw new DeployError('ddocs_broken', faults)
}
