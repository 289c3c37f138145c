import { once } from 'node:events'
import { createServer } from 'node:net'

const PORTS_TRIED = 100

/**
 * Starts a server on the preferred port of 127.0.0.1 or, if that is taken, on the next free one. The check and the
 * start are two steps, so another process may take the port between them. A failed start continues with the next port
 * if its own port was taken, or is taken by now. Any other failure is thrown. A port that was taken may be free again
 * already: two concurrent checks each hold the port for a moment.
 */
export async function startOnFreePort<T>(preferred: number, start: (port: number) => Promise<T>): Promise<T> {
  for (let port = preferred; port < preferred + PORTS_TRIED; port++) {
    if (!(await isFree(port))) continue
    try {
      return await start(port)
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EADDRINUSE' && (await isFree(port))) throw thrown
    }
  }
  throw new Error(`no free port from ${preferred} to ${preferred + PORTS_TRIED - 1} on 127.0.0.1`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch {
    return false
  }
  await once(server.close(), 'close')
  return true
}
