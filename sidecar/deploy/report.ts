import type { Target } from './bundle.ts'
import type { Change } from './compare.ts'
import type { DeployError } from './deploy-errors.ts'

/** Result for one design document, or the expected result in a dry run. */
export type DdocResult = {
  readonly id: string
  /** Types whose machines only the database declares. They stay, unless `removeMachines` is set. */
  readonly kept?: readonly string[]
  /** True if its index is built first, beside the current one. */
  readonly staged?: boolean
} &
  /** `left`: a rollback skips the document, because another deploy has changed it. */
  (
    | { readonly kind: 'unchanged' | 'removed' | 'would-remove' | 'left' }
    | { readonly kind: 'created' | 'updated' | 'would-create' | 'would-update'; readonly changes: readonly Change[] }
  )

export interface DatabaseReport {
  readonly database: string
  /** The last two come from a rollback: it reverted unfinished work, or found none. */
  readonly result: 'there' | 'created' | 'would-create' | 'rolled-back' | 'complete'
  /** After a failure: only the finished documents. */
  readonly ddocs: readonly DdocResult[]
  readonly failure?: DeployError
}

export interface DeployReport {
  /** URL of the server, without credentials. */
  readonly url: string
  readonly engine: string
  readonly target: Target
  readonly databases: readonly DatabaseReport[]
}
