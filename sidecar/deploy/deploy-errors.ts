import { SidecarError } from '../core/errors.ts'
import type { DatabaseReport } from './report.ts'

export type DeployErrorCode =
  | 'ddocs_broken' // does not compile, names something the engine lacks, or failed on a sample
  | 'server_unreachable'
  | 'not_admin'
  | 'no_database'
  | 'server_refused' // CouchDB understood and said no
  | 'stopped' // by its signal, in the middle of writing
  | 'busy' // another deploy is at work in the database
  | 'no_space' // for a second index, beside the one that is there
  | 'index_failed' // CouchDB cannot build it
  | 'not_verified' // what the database has after the swap is not what was warmed
  | 'several' // databases failed, each for a reason of its own

/** Why nothing was deployed (or not all of it: then the text says what was). */
export class DeployError extends SidecarError {
  override readonly name = 'DeployError'
  declare readonly code: DeployErrorCode
  /** One sentence each, beginning with `file:line:column` where there is a place. */
  readonly faults: readonly string[]
  /** What became of each database, where some of them failed. */
  reports: readonly DatabaseReport[] = []

  constructor(code: DeployErrorCode, faults: readonly string[], options?: ErrorOptions) {
    super(code, faults.join('\n'), options)
    this.faults = faults
  }
}

/** Throws if there are faults. */
export function refuseBroken(faults: readonly string[]): void {
  if (faults.length > 0) throw new DeployError('ddocs_broken', faults)
}
