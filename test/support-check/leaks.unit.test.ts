import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { countResources, expectNoLeaks, findLeaks } from '../support/leaks.ts'

test('a leaked server, socket, timer or process is reported until it ends', async () => {
  const before = countResources()
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  expect(findLeaks(before)).toContain('1 more listening servers than before')

  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  expect(findLeaks(before).join()).toContain('more sockets')

  const timers = [1, 2].map(() => setTimeout(() => {}, 60_000))
  expect(findLeaks(before).join()).toContain('more timers')

  const child = spawn('sleep', ['60'])
  expect(findLeaks(before)).toContain('1 more child processes than before')
  await expect(expectNoLeaks(before, 50)).rejects.toThrow('left behind')

  for (const timer of timers) clearTimeout(timer)
  socket.destroy()
  server.close()
  child.kill()
  await expectNoLeaks(before)
})

test('connections to a server from before the test do not count as leaks', async () => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const before = countResources()
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  expect(findLeaks(before).join()).not.toContain('sockets')
  socket.destroy()
  server.close()
})
