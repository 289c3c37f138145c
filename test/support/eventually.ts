import { setTimeout as sleep } from 'node:timers/promises'

/** The default limit of a wait. It is long because a busy machine may need ten times as long. */
export const PATIENCE_MS = 90_000

/**
 * The pause between two tries, within these limits, in milliseconds. It is a fifth of the wait so far or four times the
 * last try, whichever is longer. Slow checks run seldom, so that an expensive test does not keep CouchDB busy.
 */
const PAUSES = { leastMs: 10, mostMs: 250, ofWaiting: 1 / 5, ofTrying: 4 }

/**
 * Runs the assertion until it holds, and returns its result. Rethrows its last failure if it has not held within
 * `within` milliseconds (default 90,000). Use it for conditions that become true without an action of the test.
 *
 * @example
 * await eventually(async () => expect((await db.get('a')).state).toBe('done'))
 */
export async function eventually<T>(assertion: () => T | Promise<T>, { within = PATIENCE_MS } = {}): Promise<T> {
  const began = performance.now()
  for (;;) {
    const trying = performance.now()
    try {
      return await assertion()
    } catch (thrown) {
      if (performance.now() - began > within) throw thrown
    }
    const now = performance.now()
    const pauses = [PAUSES.leastMs, (now - began) * PAUSES.ofWaiting, (now - trying) * PAUSES.ofTrying]
    await sleep(Math.min(Math.max(...pauses), PAUSES.mostMs))
  }
}
