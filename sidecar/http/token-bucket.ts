import { LRUCache } from 'lru-cache'
import type { Clock } from '../core/clock.ts'

/** Limits the rate of each client, and of all clients together. */
export interface RateLimiter {
  /** Takes `count` tokens or none. Returns 0, or the milliseconds until so many are available. */
  take(client: string, count?: number): number
}

export interface RateLimiterOptions {
  /** Rate of one client; unused tokens collect up to this number. */
  readonly perMinute: number
  /** Maximum tokens taken at once. Default 1. */
  readonly atOnce?: number
  /** All clients together get the rate of this number of clients. Default 20. */
  readonly clients?: number
  readonly clock: Clock
}

/** Beyond it, the least recent client is forgotten. Its new bucket gives no more than the common one has left. */
const REMEMBERED = 10_000
const MINUTE_MS = 60_000

/** Creates token buckets: they fill steadily up to their size. In memory, separate for each process. */
export function createRateLimiter({
  perMinute,
  atOnce = 1,
  clients: many = 20,
  clock,
}: RateLimiterOptions): RateLimiter {
  const size = Math.max(perMinute, atOnce)
  const all = createBucket(perMinute * many, size * many, clock.ticks())
  const clients = new LRUCache<string, Bucket>({ max: REMEMBERED })

  function bucketOf(client: string, now: number): Bucket {
    const bucket = clients.get(client) ?? createBucket(perMinute, size, now)
    clients.set(client, bucket)
    return bucket
  }

  return {
    take(client, count = 1) {
      const now = clock.ticks()
      const own = bucketOf(client, now)
      const waitMs = missingMs(own, count, now) || missingMs(all, count, now)
      if (waitMs > 0) return waitMs
      own.tokens -= count
      all.tokens -= count
      return 0
    },
  }
}

interface Bucket {
  readonly perMs: number
  readonly size: number
  tokens: number
  /** Last refill, in the clock's ticks. */
  at: number
}

const createBucket = (perMinute: number, size: number, at: number): Bucket => {
  return { perMs: perMinute / MINUTE_MS, size, tokens: size, at }
}

/** Milliseconds until the bucket holds `count` tokens. */
function missingMs(bucket: Bucket, count: number, now: number): number {
  bucket.tokens = Math.min(bucket.size, bucket.tokens + (now - bucket.at) * bucket.perMs)
  bucket.at = now
  return Math.max(0, (count - bucket.tokens) / bucket.perMs)
}
