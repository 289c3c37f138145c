import { vi } from 'vitest'

/**
 * Runs the assertion until it holds, and returns what it returns; rethrows its last failure when it has not held
 * `within` milliseconds (20,000 unless told). For whatever becomes true by itself: no test sleeps for a fixed time.
 *
 * @example
 * await eventually(async () => expect((await db.get('a')).state).toBe('done'))
 */
export const eventually = <T>(assertion: () => T | Promise<T>, { within = 20_000 } = {}): Promise<T> =>
  vi.waitFor(assertion, { timeout: within, interval: 20 })
