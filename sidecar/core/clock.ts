import { setTimeout as delay } from 'node:timers/promises'

/** Time as the sidecar sees it. The second implementation is the one tests turn by hand. */
export interface Clock {
  /** Milliseconds since the epoch, for times that people and other machines read. */
  now(): number
  /** Milliseconds that never jump, for measuring how long something took. Means nothing outside this process. */
  ticks(): number
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  ticks: () => performance.now(),
  async sleep(ms, signal) {
    signal.throwIfAborted()
    try {
      await delay(ms, undefined, { signal })
    } catch (cause) {
      signal.throwIfAborted()
      throw cause
    }
  },
}

/** A time as it is written in documents: ISO 8601, UTC. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()
