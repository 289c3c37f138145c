import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { startOnFreePort } from '../../embedded/src/free-port.ts'

async function aFreePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}

test('a port that another one only looked at is passed over', async () => {
  const preferred = await aFreePort()
  const tried: number[] = []
  const port = await startOnFreePort(preferred, (port) => {
    tried.push(port)
    const taken = Object.assign(new Error('address already in use'), { code: 'EADDRINUSE' })
    return port === preferred ? Promise.reject(taken) : Promise.resolve(port)
  })
  expect(port).toBeGreaterThan(preferred)
  expect(tried).toEqual([preferred, port])
})

test('any other failure is the caller’s', async () => {
  const start = () => Promise.reject(new Error('no such program'))
  await expect(startOnFreePort(await aFreePort(), start)).rejects.toThrow('no such program')
})
