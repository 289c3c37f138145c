import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

/** A port of 127.0.0.1 without a listener. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}
