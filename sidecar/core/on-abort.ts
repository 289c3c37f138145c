import { setMaxListeners } from 'node:events'

/**
 * Calls the listener when the signal aborts. Returns what takes that back. Any number may wait for one signal, of which
 * Node would warn as of a leak.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => undefined
  setMaxListeners(0, signal)
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}
