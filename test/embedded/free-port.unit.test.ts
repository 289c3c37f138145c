import { expect, test } from 'vitest'
import { startOnFreePort } from '../../embedded/src/free-port.ts'
import { freePort } from '../support/free-port.ts'

test('a port that is in use only at the start is skipped', async () => {
  const preferred = await freePort()
  const tried: number[] = []
  const port = await startOnFreePort(preferred, (port) => {
    tried.push(port)
    const taken = Object.assign(new Error('address already in use'), { code: 'EADDRINUSE' })
    return port === preferred ? Promise.reject(taken) : Promise.resolve(port)
  })
  expect(port).toBeGreaterThan(preferred)
  expect(tried).toEqual([preferred, port])
})

test('any other failure is thrown to the caller', async () => {
  const start = () => Promise.reject(new Error('no such program'))
  await expect(startOnFreePort(await freePort(), start)).rejects.toThrow('no such program')
})
