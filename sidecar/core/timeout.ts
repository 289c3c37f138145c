import { onAbort } from './on-abort.ts'
import type { Clock } from './clock.ts'

/**
 * Waits for `work`, at most `ms`. Returns true if the work ended in time. Throws what the work throws, and the signal's
 * reason as soon as it aborts.
 */
export async function withTimeout(
  clock: Clock,
  ms: number,
  work: Promise<unknown>,
  signal?: AbortSignal,
): Promise<boolean> {
  signal?.throwIfAborted()
  const done = new AbortController()
  const stopListening = onAbort(signal, () => done.abort())
  try {
    const late = clock.sleep(ms, done.signal).then(
      () => false,
      () => true,
    )
    const inTime = await Promise.race([work.then(() => true), late])
    signal?.throwIfAborted()
    return inTime
  } finally {
    done.abort()
    stopListening()
  }
}
