/** Requests to a server that stops answering, or that is not CouchDB. */
import { expect, test } from 'vitest'
import type { Db } from '../../client/src/pouch.ts'
import { openRemote, type RemoteOptions } from '../../client/src/sync/remote.ts'
import { runSession } from '../../client/src/sync/session.ts'
import { eventually } from '../support/eventually.ts'
import { delay, pass, silence, silenceAfterBytes, type Fault } from '../support/faulty-proxy.ts'
import { page, startReplica, type Replica } from './replica.ts'
import type { TestDb } from './stage.ts'

async function startRemote(options: RemoteOptions = {}) {
  const replica = await startReplica()
  await replica.there.put({ _id: 'note', text: 'x'.repeat(10_000) })
  return { ...replica, remote: openRemote(replica.PouchDB, replica.target, options) }
}

async function copyOnce({ here, target, PouchDB }: Replica): Promise<void> {
  const ended = await runSession({
    ...{ local: here, remote: openRemote(PouchDB, target), live: false, signal: new AbortController().signal },
    ...{ onCopied() {}, onEven() {}, onRefused() {} },
  })
  expect(ended).toEqual({ kind: 'done' })
}

const untilNothingIsOpen = ({ proxy }: Awaited<ReturnType<typeof startRemote>>) =>
  eventually(() => expect(proxy.openConnections).toBe(0), { within: 10_000 })

test.each([
  ['without an answer', silence],
  ['whose answer stops in the middle', silenceAfterBytes(2000)],
] as [string, Fault][])('a request %s times out', async (_what, fault) => {
  const started = await startRemote({ silenceMs: 500 })
  const { remote, proxy } = started
  proxy.plan(() => fault)
  const thrown: unknown = await remote.db.get('note').catch((error: unknown) => error)
  expect(remote.failureOf(thrown)).toMatchObject({
    code: 'offline',
    reason: expect.stringContaining('0.5 s') as string,
  })
  remote.end()
  await untilNothingIsOpen(started)
})

test('an app with another adapter for local databases still reaches the server', async () => {
  const { PouchDB, target, there } = await startReplica()
  await there.put({ _id: 'note' })
  const defaults = { adapter: 'leveldb' } // as for an app that keeps all databases in memory
  const Other = (PouchDB as unknown as { defaults(options: object): typeof PouchDB }).defaults(defaults)
  const remote = openRemote(Other, target)
  expect(await remote.db.get('note')).toMatchObject({ _id: 'note' })
  remote.end()
})

test('a slow answer is not cut off while data arrives', async () => {
  const { remote, proxy } = await startRemote({ silenceMs: 1000 })
  const received: number[] = []
  proxy.plan(() => async (exchange) => {
    const { body, ...head } = await exchange.forward()
    const chunks: Buffer[] = []
    for await (const chunk of body) chunks.push(chunk)
    const whole = Buffer.concat(chunks)
    const slow = (async function* () {
      for (let at = 0; at < whole.length; at += 2000) {
        yield whole.subarray(at, at + 2000)
        received.push(at)
        await exchange.wait(300)
      }
    })()
    await exchange.send({ ...head, body: slow })
    exchange.end()
  })
  expect(await remote.db.get('note')).toMatchObject({ _id: 'note' })
  expect(received.length).toBeGreaterThan(4)
  remote.end()
})

test.each([
  ['is waited for', silence],
  ['is being read', silenceAfterBytes(2000)],
] as [string, Fault][])('a request that %s is aborted by the end of a session', async (_what, fault) => {
  const started = await startRemote()
  const { remote, proxy, ask } = started
  await ask('with%20photo/photo', { method: 'PUT', body: 'x'.repeat(10_000) })
  let requested = 0
  proxy.plan(() => async (exchange) => {
    await fault(exchange)
    requested += 1
  })
  const getting = (remote.db as Db & TestDb).getAttachment('with photo', 'photo').catch(() => 'broken off')
  await eventually(() => expect(requested).toBe(1))
  remote.end()
  expect(await getting).toBe('broken off')
  await untilNothingIsOpen(started)
})

test('a proxy’s page in place of the database info does not break a replication', async () => {
  const replica = await startReplica()
  const { there, here, proxy } = replica
  await there.put({ _id: 'note' })
  proxy.plan(({ path }) => (path.replace(/\/$/, '') === `/${there.name}` ? page(502) : undefined))
  await copyOnce(replica)
  expect(await here.get('note')).toMatchObject({ _id: 'note' })
})

test('a page as an answer is classified by its status', async () => {
  const { remote, proxy } = await startRemote()
  for (const [status, code] of [
    [403, 'denied'],
    [404, 'gone'],
    [502, 'failed'],
  ] as const) {
    proxy.next(delay(0, page(status)))
    const thrown: unknown = await remote.db.get('note').catch((error: unknown) => error)
    expect(remote.failureOf(thrown)).toMatchObject({ code, reason: expect.stringContaining(String(status)) as string })
  }
  proxy.plan(() => pass)
  remote.end()
})

test('attachments are copied byte for byte, with any content type', async () => {
  const replica = await startReplica()
  const { there, here, ask } = replica
  const bytes = {
    'map.json': Buffer.from([0xff, 0xfe, 0x7b, 0x0d, 0x0a, 0x80]),
    photo: Buffer.from([0, 1, 0xc3, 0x28]),
  }
  const types = { 'map.json': 'application/json', photo: 'image/jpeg' }
  const names = ['map.json', 'photo'] as const
  const docWith = (_id: string) => {
    const attachments = names.map((name) => [name, { content_type: types[name], data: bytes[name].toString('base64') }])
    return { _id, _attachments: Object.fromEntries(attachments) as object }
  }
  await here.put(docWith('from here'))
  const json = { 'content-type': 'application/json' }
  await ask('from%20there', { method: 'PUT', headers: json, body: JSON.stringify(docWith('from there')) })
  await copyOnce(replica)
  expect(await there.get('from here')).toMatchObject({ _id: 'from here' })
  for (const name of names) {
    expect(Buffer.from(await here.getAttachment('from there', name))).toEqual(bytes[name])
    const answer = await ask(`from%20here/${name}`)
    expect(answer.headers.get('content-type')).toBe(types[name])
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes[name])
  }
})
