import { CouchError } from '../couch/couch-errors.ts'

/** Marks a time without items in the stream. */
export const QUIET = Symbol('quiet')

/**
 * Passes items on and yields QUIET if none came for `quietMs`. Throws `CouchError` with code `timeout` if none came
 * for `silenceMs`. Only the time spent waiting for the source counts, not the consumer's time.
 */
export async function* watchSilence<T>(
  request: string,
  source: AsyncIterable<T>,
  { quietMs, silenceMs }: { quietMs: number; silenceMs: number },
): AsyncGenerator<T | typeof QUIET> {
  const iterator = source[Symbol.asyncIterator]()
  let finished = false
  try {
    for (;;) {
      const next = iterator.next()
      let result = await Promise.race([next, after(next, quietMs)])
      if (result === QUIET) {
        yield QUIET
        result = await Promise.race([next, after(next, silenceMs - quietMs)])
      }
      if (result === QUIET) {
        next.catch(() => undefined) // the thrown error closes the connection, which ends this read
        throw new CouchError('timeout', { request, reason: `no data for ${silenceMs} ms, not even a heartbeat` })
      }
      if (result.done) {
        finished = true
        return
      }
      yield result.value
    }
  } finally {
    if (!finished) void iterator.return?.().catch(() => undefined)
  }
}

/** Resolves with QUIET after `ms`, unless `settled` settles first, which also clears the timer. */
function after(settled: Promise<unknown>, ms: number): Promise<typeof QUIET> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(QUIET), ms)
    const stop = () => clearTimeout(timer)
    settled.then(stop, stop)
  })
}
