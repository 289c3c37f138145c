import { BUCKETS } from './ledger.ts'

/** Which buckets of databases are this worker's. */
export interface Share {
  buckets(): ReadonlySet<number>
  /** Calls when it has changed, until the signal. */
  onChange(listener: () => void, signal: AbortSignal): void
}

const ALL: ReadonlySet<number> = new Set(Array.from({ length: BUCKETS }, (_, bucket) => bucket))

/** Of the only worker. */
export const allBuckets: Share = { buckets: () => ALL, onChange: () => undefined }
