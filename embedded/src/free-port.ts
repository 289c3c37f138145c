import { once } from 'node:events'
import { createServer } from 'node:net'

const PORTS_TRIED = 100

/**
 * Starts something on the preferred port of 127.0.0.1 or, where that is taken, on the next free one. Looking and
 * listening are two steps, so another process may come between: a start that fails is tried on the next port if its
 * own port was taken, or turns out to be by now, and is the caller's failure otherwise. It may be free again already: of two that
 * look at the same time, one takes the port for a moment.
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
