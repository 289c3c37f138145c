import { afterEach, expect, test, vi } from 'vitest'
import { addressOf } from '../../client/src/address.ts'
import { newAddress, startDevice, startStage, untilStatus } from './stage.ts'

afterEach(() => void vi.unstubAllGlobals())

test('in a page, a relative address is resolved against the page', async () => {
  expect(addressOf('couchdb', 'https://Example.com:443/couchdb/')).toBe('https://example.com/couchdb')
  vi.stubGlobal('location', new URL('https://app.example.com/notes/index.html#first'))
  expect(addressOf('couchdb', '/couchdb')).toBe('https://app.example.com/couchdb')
  expect(addressOf('inbox', 'inbox')).toBe('https://app.example.com/notes/inbox')
  expect(() => addressOf('inbox', 'ftp://example.com')).toThrow(
    expect.objectContaining({ code: 'bad_argument' }) as Error,
  )
})

test('outside a page, a relative address is refused before any database is made', async () => {
  const stage = await startStage()
  for (const options of [{ inbox: '/inbox' }, { couchdb: '/couchdb' }, { couchdb: 'example.com:5984' }]) {
    await expect(startDevice(stage, options)).rejects.toMatchObject({ code: 'bad_argument' })
  }
})

test('the locks of Node, which exist within one process only, do not stop a device', async () => {
  // As if another process held the lock.
  vi.stubGlobal('navigator', { locks: { request: () => new Promise(() => undefined) } })
  const stage = await startStage()
  const { client } = await startDevice(stage)
  await client.register({ owner: newAddress('ann') })
  await untilStatus(client, ({ registration }) => registration.state === 'confirming')
})
