/**
 * Tells when it is worth to try again at once: the network is back (`hard`: what was connected before may hang), or
 * the page is looked at. Does nothing where there is no window, as in Node or in a worker. Returns the end of it.
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
