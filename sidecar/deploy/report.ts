import type { Target } from './bundle.ts'
import type { Change } from './compare.ts'
import type { DeployError } from './deploy-errors.ts'

/** What became of one design document, or would have in a dry run. */
export type DdocResult = {
  readonly id: string
  /** Types whose machines only the database declares: they stay, unless asked otherwise. */
  readonly kept?: readonly string[]
  /** Its index is built first, beside the one that answers. */
  readonly staged?: boolean
} &
  /** `left`: by a rollback, since another deploy has changed it. */
  (
    | { readonly kind: 'unchanged' | 'removed' | 'would-remove' | 'left' }
    | { readonly kind: 'created' | 'updated' | 'would-create' | 'would-update'; readonly changes: readonly Change[] }
  )

export interface DatabaseReport {
  readonly database: string
  /** The last two of a rollback: what was unfinished is taken back; nothing was. */
  readonly result: 'there' | 'created' | 'would-create' | 'rolled-back' | 'complete'
  /** As far as it came. */
  readonly ddocs: readonly DdocResult[]
  readonly failure?: DeployError
}

export interface DeployReport {
  /** Of the server, without credentials. */
  readonly url: string
  readonly engine: string
  readonly target: Target
  readonly databases: readonly DatabaseReport[]
}
