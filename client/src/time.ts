/** A pause that can be ended from outside. */
export interface Bell {
  /** Ends the pause; if there is no pause now, the next one ends at once. */
  ring(): void
  /** Resolves after `ms` (`Infinity`: not by itself), at a ring, or when the signal aborts. Never rejects. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export function createBell(): Bell {
  let rung = false
  let wake: (() => void) | undefined

  return {
    ring() {
      rung = true
      wake?.()
    },
    wait(ms, signal) {
      return new Promise((resolve) => {
        const timer = Number.isFinite(ms) ? setTimeout(end, ms) : undefined
        function end() {
          clearTimeout(timer)
          signal.removeEventListener('abort', end)
          wake = undefined
          rung = false
          resolve()
        }
        wake = end
        signal.addEventListener('abort', end)
        if (rung || signal.aborted) end()
      })
    },
  }
}

const FIRST_MS = 1000
const LAST_MS = 60_000

/** Wait after consecutive failures, milliseconds: 1 s, 2 s, … up to a minute, with jitter. */
export const backoffMs = (failures: number): number =>
  Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10)) * (0.75 + Math.random() / 4)
