import { onAbort } from './on-abort.ts'

/** The sidecar's source of time. Tests have a second implementation, with manual time. */
export interface Clock {
  /** Milliseconds since the epoch, for times that people and other machines read. */
  now(): number
  /** Monotonic milliseconds, to measure durations. Meaningless outside this process. */
  ticks(): number
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/** 24.8 days: Node fires a longer timer at once. */
export const LONGEST_TIMER_MS = 2_147_483_647

export const systemClock: Clock = {
  now: () => Date.now(),
  ticks: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      let timer: NodeJS.Timeout
      const wait = (leftMs: number) => {
        timer = setTimeout(
          () => {
            if (leftMs > LONGEST_TIMER_MS) return wait(leftMs - LONGEST_TIMER_MS)
            stopListening()
            resolve()
          },
          Math.min(leftMs, LONGEST_TIMER_MS),
        )
      }
      wait(ms)
      const stopListening = onAbort(signal, () => {
        clearTimeout(timer)
        reject(signal.reason as Error)
      })
    }),
}

/** Formats a time as documents hold it: ISO 8601, UTC. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()
