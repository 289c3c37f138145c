import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A pause between two tries lasts as long as a fifth of the waiting so far, and four times what the try took: what takes
 * long is not asked for often, and a test that asks for much is not what keeps CouchDB busy. Milliseconds.
 */
const PAUSES = { leastMs: 10, mostMs: 250, ofWaiting: 1 / 5, ofTrying: 4 }

/**
 * Runs the assertion until it holds, and returns what it returns; rethrows its last failure when it has not held
 * `within` milliseconds (30,000 unless told). For what becomes true by itself.
 *
 * @example
 * await eventually(async () => expect((await db.get('a')).state).toBe('done'))
 */
export async function eventually<T>(assertion: () => T | Promise<T>, { within = 30_000 } = {}): Promise<T> {
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
