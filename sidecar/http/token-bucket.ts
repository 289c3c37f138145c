import { LRUCache } from 'lru-cache'
import type { Clock } from '../core/clock.ts'

/** Lets through so much a minute from each client, and so much from all of them together. */
export interface RateLimiter {
  /** Takes so many at once, or none. 0, or how long to wait until there are as many, milliseconds. */
  take(client: string, count?: number): number
}

export interface RateLimiterOptions {
  /** From one client; what was not used gathers up to as many. */
  readonly perMinute: number
  /** The most that is taken at once. Default 1. */
  readonly atOnce?: number
  /** All together may send as much as so many clients that send as much as they may. Default 20. */
  readonly clients?: number
  readonly clock: Clock
}

/** Beyond that, the client that came longest ago is forgotten: it gets a new bucket, and no more than all have left. */
const REMEMBERED = 10_000
const MINUTE_MS = 60_000

/** Buckets with a hole: they fill steadily and never run over. In memory, each process for itself. */
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
  /** When it was looked at, by the clock's ticks. */
  at: number
}

const createBucket = (perMinute: number, size: number, at: number): Bucket => {
  return { perMs: perMinute / MINUTE_MS, size, tokens: size, at }
}

/** How long until there are as many, milliseconds. */
function missingMs(bucket: Bucket, count: number, now: number): number {
  bucket.tokens = Math.min(bucket.size, bucket.tokens + (now - bucket.at) * bucket.perMs)
  bucket.at = now
  return Math.max(0, (count - bucket.tokens) / bucket.perMs)
}
