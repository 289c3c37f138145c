import { expect, test } from 'vitest'
import type { Progress } from '../../../sidecar/deploy/staging/surroundings.ts'
import { rollBack } from '../../../sidecar/deploy/roll-back.ts'
import { createLatch } from '../../docstate/rig.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { pass, startFaultyProxy, type FaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { errorOf } from '../app.ts'
import { deployShop, openShop, shop } from './rig.ts'

const isBuild = ({ query }: SeenRequest) => query.get('update') === 'lazy'

/** A deploy that waits before this request until `go.open()`, and writes heartbeats. */
async function openBusy(deadAfterMs: number, isIt: (request: SeenRequest) => boolean = isBuild) {
  const opened = await openShop()
  const proxy: FaultyProxy = await startFaultyProxy()
  const go = createLatch()
  proxy.next((exchange) => go.opened.then(() => pass(exchange)), isIt)
  const couch = createTestCouch({ url: proxy.url })
  const first = deployShop(couch, opened.db.name, shop(2), { name: 'ann on desk', deadAfterMs })
  first.catch(() => undefined)
  await eventually(() => expect(proxy.requests.some(isIt)).toBe(true))
  return { ...opened, proxy, go, first }
}

test('one of two concurrent deploys succeeds, and the other reports busy', async () => {
  needs('index lag')
  const { couch, db, rows, left } = await openShop()
  const both = ['ann', 'ben'].map((name) => deployShop(couch, db.name, shop(2), { name, deadAfterMs: 2000 }))
  const [won, lost] = (await Promise.allSettled(both)).sort((a) => (a.status === 'fulfilled' ? -1 : 1))
  expect(won).toMatchObject({ status: 'fulfilled' })
  expect(lost).toMatchObject({ status: 'rejected', reason: { code: 'busy' } })
  expect(await rows()).toBe(2)
  expect(await left()).toEqual([])
})

test('a second deploy or a rollback reports who deploys and since when', async () => {
  needs('index lag')
  const { couch, db, go, first, rows } = await openBusy(2000)
  const seen: Progress[] = []
  const onProgress = (progress: Progress) => void seen.push(progress)
  const error = await errorOf(deployShop(couch, db.name, shop(3), { onProgress, deadAfterMs: 2000 }))
  expect(error.code).toBe('busy')
  expect(error.message).toMatch(/ann on desk has been deploying here since \d{4}-\d\d-\d\dT[\d:.]+Z/)
  expect(seen).toMatchObject([{ kind: 'watching', database: db.name, holder: { name: 'ann on desk' } }])
  const taken = await errorOf(rollBack({ couch, databases: [db.name], deadAfterMs: 2000 }))
  expect(taken.code).toBe('busy')
  go.open()
  await first
  expect(await rows()).toBe(2)
})

test.each([
  ['builds the index', isBuild],
  ['swaps the design document', ({ method, path }: SeenRequest) => method === 'PUT' && path.endsWith('/_design/app')],
  ['cleans up', ({ method, path }: SeenRequest) => method === 'DELETE' && path.includes('staged')],
])('a deploy suspended when it %s loses its lock, and stops when it resumes', async (_, isIt) => {
  needs('index lag')
  const { couch, db, proxy, go, first, rows, left } = await openBusy(400, isIt)
  proxy.freeze(true)
  await deployShop(couch, db.name, shop(3))
  proxy.freeze(false)
  go.open()
  const error = await errorOf(first)
  expect(error.code).toBe('busy')
  expect(await rows()).toBe(3)
  expect(await left()).toEqual([])
})

test('takeOver replaces a deploy that seems to be alive', async () => {
  needs('index lag')
  const { couch, db, go, first, rows } = await openBusy(10_000)
  await deployShop(couch, db.name, shop(3), { takeOver: true, deadAfterMs: 10_000 })
  go.open()
  expect((await errorOf(first)).code).toBe('busy')
  expect(await rows()).toBe(3)
})

test('a malformed deploy record does not block a rollback', async () => {
  needs('index lag')
  const { couch, db, rows, left } = await openShop()
  const attach = (text: string) => {
    const data = Buffer.from(text).toString('base64')
    return { 'previous.json': { content_type: 'application/json', data } }
  }
  const fields = { _id: '_design/sidecar:deploy', holder: 'me', log: 'none', ddocs: { a: 1 } }
  for (const _attachments of [undefined, attach('{'), attach('{"_design/app":7,"other":null}')]) {
    await db.put({ ...fields, ...(_attachments && { _attachments }) })
    await rollBack({ couch, databases: [db.name] })
    expect(await left()).toEqual([])
    expect(await rows()).toBe(1)
  }
})

test('a stopped deploy releases its lock at once', async () => {
  needs('index lag')
  const { couch, db, rows } = await openShop()
  const proxy = await startFaultyProxy()
  const stopping = new AbortController()
  proxy.next(() => stopping.abort(new Error('stopped by hand')), isBuild)
  const { signal } = stopping
  const stopped = await errorOf(deployShop(createTestCouch({ url: proxy.url }), db.name, shop(2), { signal }))
  expect(stopped.faults).toEqual([
    'stopped by hand',
    'nothing was written before that',
    `not written: ${db.name}/_design/app`,
    'run the deploy again for the rest',
    'until then the previous version answers; --rollback removes the unfinished one',
  ])
  await deployShop(couch, db.name, shop(2), { deadAfterMs: 3_600_000 })
  expect(await rows()).toBe(2)
})

test('a deploy that stages nothing ignores the record of other design documents', async () => {
  needs('index lag')
  const { couch, db, go, first } = await openBusy(2000)
  const report = await deployShop(couch, db.name, { 'plain/rows.json': '1' })
  expect(report.databases[0]!.ddocs).toMatchObject([{ kind: 'created' }])
  go.open()
  await first
})
