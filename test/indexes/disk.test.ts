import { statfs } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { freeDisk } from '../../sidecar/indexes/disk.ts'
import { createTestCouch, needs, serverKind } from '../support/couchdb.ts'
import { skipFor } from '../support/features.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { answerOf } from '../support/answers.ts'

const config = (folders: Record<string, string>) => refuse(200, folders as unknown as { error: string; reason: string })

/** A client of a server that reports this configuration of its folders. */
async function couchWith(fault: ReturnType<typeof config>) {
  const proxy = await startFaultyProxy()
  proxy.plan(({ path }) => (path === '/_node/_local/_config/couchdb' ? fault : undefined))
  return createTestCouch({ url: proxy.url })
}

test('a server on this machine reports the free bytes of its index disk', async () => {
  needs('node endpoints')
  if (serverKind() !== 'binary') skipFor('the test server may have its files on another machine')
  const couch = createTestCouch()
  const { view_index_dir: folder } = await answerOf<Record<string, string>>(couch, {
    path: '_node/_local/_config/couchdb',
  })
  const { blocks, bfree, bavail, bsize } = await statfs(folder!)
  const disk = await freeDisk(couch)
  const moved = 1e9 // other processes write, too
  expect(Math.abs(disk!.totalBytes - (blocks - bfree + bavail) * bsize)).toBeLessThan(moved)
  expect(Math.abs(disk!.freeBytes - bavail * bsize)).toBeLessThan(moved)
  expect(disk!.freeBytes).toBeGreaterThan(0)
})

test.each([
  ['does not report its folders', config({})],
  ['has folders that do not exist on this machine', config({ database_dir: '/nowhere', view_index_dir: '/nowhere' })],
  ['has a folder that is another one on this machine', config({ database_dir: '/', view_index_dir: '/' })],
  ['has relative folders', config({ database_dir: './data', view_index_dir: './data' })],
  ['refuses the request', refuse(403)],
])('the free disk is unknown for a server that %s', async (_, fault) => {
  expect(await freeDisk(await couchWith(fault))).toBeUndefined()
})

test('the free disk is unknown for a server on another machine, without a request', async () => {
  expect(await freeDisk({ ...createTestCouch(), url: 'http://db.example.com:5984' })).toBeUndefined()
})
