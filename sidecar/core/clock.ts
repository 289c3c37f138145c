import { onAbort } from './on-abort.ts'

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
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const timer = setTimeout(() => {
        stopListening()
        resolve()
      }, ms)
      const stopListening = onAbort(signal, () => {
        clearTimeout(timer)
        reject(signal.reason as Error)
      })
    }),
}

/** A time as it is written in documents: ISO 8601, UTC. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()
