import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { startOnFreePort } from '../../embedded/src/free-port.ts'

/** A port of 127.0.0.1 without a listener. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}

/**
 * Starts a server on a random port of 127.0.0.1 that stays free while the server is down: it is below the ports that
 * the system gives to connections and to servers on port 0, one of which could take it.
 */
export const startOnOwnPort = <T>(start: (port: number) => Promise<T>): Promise<T> =>
  startOnFreePort(randomInt(20_000, 32_000), start)

/** Listens as `startOnOwnPort` does. Returns the port. */
export const listenOnOwnPort = (server: Server): Promise<number> =>
  startOnOwnPort(async (port) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return port
  })
