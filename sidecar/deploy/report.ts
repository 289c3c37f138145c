import type { Target } from './bundle.ts'
import type { Change } from './compare.ts'

/** What became of one design document, or would have in a dry run. */
export type DdocResult = {
  readonly id: string
  /** Types whose machines only the database declares: they stay, unless asked otherwise. */
  readonly kept?: readonly string[]
} & (
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'created' | 'updated' | 'would-create' | 'would-update'; readonly changes: readonly Change[] }
)

export interface DatabaseReport {
  readonly database: string
  readonly result: 'there' | 'created' | 'would-create'
  readonly ddocs: readonly DdocResult[]
}

export interface DeployReport {
  /** Of the server, without credentials. */
  readonly url: string
  readonly engine: string
  readonly target: Target
  readonly databases: readonly DatabaseReport[]
}
