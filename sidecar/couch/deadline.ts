import { onAbort } from '../core/on-abort.ts'
import { CouchError } from './couch-errors.ts'

/**
 * Runs `work` with a signal that aborts with the caller's signal or after `timeoutMs`. `work` calls `inTime` to cancel
 * the timeout. The timer and the listener end with the work, as in `untilAny`.
 */
export async function withDeadline<T>(
  request: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (deadline: AbortSignal, inTime: () => void) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const stopListening = onAbort(signal, () => controller.abort(signal?.reason))
  const timer = setTimeout(() => {
    controller.abort(new CouchError('timeout', { request, reason: `no answer within ${timeoutMs} ms` }))
  }, timeoutMs)
  try {
    return await work(controller.signal, () => clearTimeout(timer))
  } catch (thrown) {
    if (controller.signal.aborted) throw controller.signal.reason
    throw thrown
  } finally {
    clearTimeout(timer)
    stopListening()
  }
}
