import { setMaxListeners } from 'node:events'

/**
 * Calls the listener when the signal aborts. Returns a function that removes the listener. Any number of listeners may
 * wait for one signal, so Node's warning of a leak is switched off.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (!signal) return () => undefined
  setMaxListeners(0, signal)
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}
