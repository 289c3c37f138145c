import { CouchError } from '../couch/couch-errors.ts'

/** Stands in the stream for "nothing came for a while". */
export const QUIET = Symbol('quiet')

/**
 * Passes items on, yields QUIET when none came for `quietMs`, and throws `CouchError` with code `timeout` when none
 * came for `silenceMs`. Only the time spent waiting for the source counts, never the consumer's own.
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
        next.catch(() => undefined) // ends with the connection, which the thrown error closes
        throw new CouchError('timeout', { request, reason: `not a byte for ${silenceMs} ms, not even a heartbeat` })
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

/** QUIET after `ms`, unless `settled` is first; its timer goes with whichever comes. */
function after(settled: Promise<unknown>, ms: number): Promise<typeof QUIET> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(QUIET), ms)
    const stop = () => clearTimeout(timer)
    settled.then(stop, stop)
  })
}
