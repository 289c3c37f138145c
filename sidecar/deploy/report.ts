import type { Target } from './bundle.ts'
import type { Change } from './compare.ts'

/** What became of one design document, or would have in a dry run. */
export type DdocResult =
  | { readonly kind: 'unchanged'; readonly id: string }
  | {
      readonly kind: 'created' | 'updated' | 'would-create' | 'would-update'
      readonly id: string
      readonly changes: readonly Change[]
    }

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
