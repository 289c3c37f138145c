import { undivided, type NamePartition } from '../../workers/name-partition.ts'
import { BUCKETS } from './ledger.ts'

/** The buckets of databases that belong to this worker. */
export interface BucketPartition extends Pick<NamePartition, 'known' | 'onChange'> {
  buckets(): ReadonlySet<number>
}

const everyBucket = Array.from({ length: BUCKETS }, (_, bucket) => bucket)

export function partitionBuckets(partition: NamePartition, signal: AbortSignal): BucketPartition {
  const ours = () => new Set(everyBucket.filter((bucket) => partition.isOurs(`bucket ${bucket}`)))
  let buckets = ours()
  partition.onChange(() => (buckets = ours()), signal)
  return {
    known: partition.known,
    buckets: () => buckets,
    onChange: (listener, until) => partition.onChange(listener, until),
  }
}

/** All buckets, for the only worker. */
export const allBuckets: BucketPartition = partitionBuckets(undivided, AbortSignal.abort())
