/** Caches the page. With a network, the page is the newest version; without one, the cached version. */
const KEPT = 'notes-page'
const FILES = ['./', 'style.css', 'app.js']

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(FILES)))
  self.skipWaiting()
})
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', (event) => {
  const { request } = event
  const own = FILES.map((file) => new URL(file, self.registration.scope).href)
  if (request.method === 'GET' && own.includes(request.url.replace(/#.*/, ''))) event.respondWith(fetched(request))
})

async function fetched(request) {
  const cache = await caches.open(KEPT)
  try {
    const answer = await fetch(request)
    if (answer.ok) await cache.put(request, answer.clone())
    return answer
  } catch (thrown) {
    const kept = await cache.match(request)
    if (kept) return kept
    throw thrown
  }
}
