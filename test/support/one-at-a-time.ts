import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll } from 'vitest'

/** Whoever listens there has its turn; it goes with its process, however that ends. */
const PORT = 16_983
const MOST_MS = 900_000

/**
 * The tests of this file wait until those of no other file that says so are running: they start servers and sidecars of
 * their own, and two of them at once would find their machine too slow for the times that they set.
 */
export function oneAtATime(): void {
  const server = createServer()
  beforeAll(async () => {
    for (;;) {
      try {
        await once(server.listen(PORT, '127.0.0.1'), 'listening')
        return
      } catch {
        await sleep(500)
      }
    }
  }, MOST_MS)
  afterAll(async () => {
    if (server.listening) await once(server.close(), 'close')
  })
}
