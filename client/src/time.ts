/** A pause that can be ended from outside. */
export interface Bell {
  /** Ends the pause; if there is no pause now, the next one ends at once. */
  ring(): void
  /** Resolves after so long (`Infinity`: not by itself), when it rings, or when the signal aborts; never rejects. */
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

/** How long to wait after so many failures in a row: 1 s, 2 s, … a minute, a part of it by chance. */
export const backoffMs = (failures: number): number =>
  Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10)) * (0.75 + Math.random() / 4)
