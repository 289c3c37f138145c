/**
 * Calls `wake` when an immediate retry may succeed: the network is back (`hard`: old connections may hang), or the page
 * becomes visible. Does nothing without a window, as in Node or in a worker. Returns a function that stops it.
 */
export function onWake(wake: (how: { readonly hard: boolean }) => void): () => void {
  const { window, document } = globalThis as Partial<Pick<typeof globalThis, 'window' | 'document'>>
  if (!window || !document) return () => undefined
  const reconnect = () => wake({ hard: true })
  const look = () => {
    if (document.visibilityState === 'visible') wake({ hard: false })
  }
  window.addEventListener('online', reconnect)
  document.addEventListener('visibilitychange', look)
  return () => {
    window.removeEventListener('online', reconnect)
    document.removeEventListener('visibilitychange', look)
  }
}
