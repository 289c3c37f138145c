/**
 * Runs `look`, which checks the whole state after any change; never two looks at once. Calls before a look begins share
 * it. Looks that no caller awaits keep a minimum interval. A failed look is retried: no later change may trigger one.
 */
import { backoffMs } from './time.ts'

export interface Looks {
  /** Resolves when a look that began after this call is done; rejects if that look fails. */
  now(): Promise<void>
  /** Starts a look that no caller awaits. */
  soon(): void
  /** Starts no more looks. Resolves when none is running. */
  end(): Promise<void>
}

/** Minimum time between the end of a look and one that no caller awaits. */
const GATHER_MS = 50

/** @param onFailed called for each failed look */
export function createLooks(look: () => Promise<void>, onFailed: (thrown: unknown) => void): Looks {
  /** The last requested look. */
  let last = Promise.resolve()
  /** The last requested look, until it begins. */
  let queued: Promise<void> | undefined
  let gathering: ReturnType<typeof setTimeout> | undefined
  let retrying: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let doneAt = -Infinity
  let ended = false

  async function after(before: Promise<void>): Promise<void> {
    await before.catch(() => undefined)
    queued = undefined
    clearTimeout(gathering)
    gathering = undefined
    if (ended) return
    clearTimeout(retrying)
    try {
      await look()
      failures = 0
    } catch (thrown) {
      onFailed(thrown)
      if (!ended) retrying = setTimeout(soon, backoffMs(++failures))
      throw thrown
    } finally {
      doneAt = performance.now()
    }
  }

  function now(): Promise<void> {
    return (queued ??= last = after(last))
  }

  function soon(): void {
    if (ended) return
    const restMs = doneAt + GATHER_MS - performance.now()
    gathering ??= setTimeout(() => void now().catch(() => undefined), Math.max(0, restMs))
  }

  return {
    now,
    soon,
    async end() {
      ended = true
      clearTimeout(gathering)
      clearTimeout(retrying)
      await last.catch(() => undefined)
    },
  }
}
