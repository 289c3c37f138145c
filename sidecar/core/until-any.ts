import { onAbort } from './on-abort.ts'

/**
 * Runs `work` with a signal that aborts as soon as one of `signals` does. Removes its listeners with the work:
 * `AbortSignal.any` leaves an entry in each source for the source's whole life.
 */
export async function untilAny<T>(
  signals: readonly AbortSignal[],
  work: (until: AbortSignal) => Promise<T>,
): Promise<T> {
  const any = new AbortController()
  const abort = () => any.abort(signals.find(({ aborted }) => aborted)?.reason)
  const listening = signals.map((signal) => onAbort(signal, abort))
  if (signals.some(({ aborted }) => aborted)) abort()
  try {
    return await work(any.signal)
  } finally {
    for (const end of listening) end()
  }
}
