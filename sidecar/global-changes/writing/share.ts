import { undivided, type Share as Division } from '../../workers/share.ts'
import { BUCKETS } from './ledger.ts'

/** Which buckets of databases are this worker's. */
export interface Share extends Pick<Division, 'known' | 'onChange'> {
  buckets(): ReadonlySet<number>
}

const everyBucket = Array.from({ length: BUCKETS }, (_, bucket) => bucket)

export function shareBuckets(division: Division, signal: AbortSignal): Share {
  const ours = () => new Set(everyBucket.filter((bucket) => division.isOurs(`bucket ${bucket}`)))
  let buckets = ours()
  division.onChange(() => (buckets = ours()), signal)
  return {
    known: division.known,
    buckets: () => buckets,
    onChange: (listener, until) => division.onChange(listener, until),
  }
}

/** Of the only worker. */
export const allBuckets: Share = shareBuckets(undivided, AbortSignal.abort())
