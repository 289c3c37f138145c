import { setTimeout as sleep } from 'node:timers/promises'

/** Between two tries, milliseconds: the first pause, and the longest. A try usually asks CouchDB something. */
const PAUSES = { firstMs: 10, mostMs: 100 }

/**
 * Runs the assertion until it holds, and returns what it returns; rethrows its last failure when it has not held
 * `within` milliseconds (30,000 unless told). For whatever becomes true by itself: no test sleeps for a fixed time.
 *
 * @example
 * await eventually(async () => expect((await db.get('a')).state).toBe('done'))
 */
export async function eventually<T>(assertion: () => T | Promise<T>, { within = 30_000 } = {}): Promise<T> {
  const deadline = performance.now() + within
  for (let pauseMs = PAUSES.firstMs; ; pauseMs = Math.min(pauseMs * 1.5, PAUSES.mostMs)) {
    try {
      return await assertion()
    } catch (thrown) {
      if (performance.now() > deadline) throw thrown
    }
    await sleep(pauseMs)
  }
}
