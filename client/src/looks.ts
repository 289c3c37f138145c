/**
 * The whole is looked at, one look after the other, whatever has changed. Who asks before a look has begun shares it; for
 * what is not waited for there is one now and then. One that fails is taken again: what it was about may not change any more.
 */
import { backoffMs } from './time.ts'

export interface Looks {
  /** Resolves when a look is done that began later than this, rejects when it has failed. */
  now(): Promise<void>
  /** For those who wait for nothing. */
  soon(): void
  /** Begins none any more; resolves when none is under way. */
  end(): Promise<void>
}

/** Between looks that are not waited for. */
const GATHER_MS = 50

/** @param onFailed is told each time */
export function createLooks(look: () => Promise<void>, onFailed: (thrown: unknown) => void): Looks {
  /** The last that was asked for. */
  let last = Promise.resolve()
  /** The same, as long as it has not begun. */
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
