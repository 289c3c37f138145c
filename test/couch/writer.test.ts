import { expect, test } from 'vitest'
import { Semaphore } from '../../sidecar/core/semaphore.ts'
import { createWriter, noWrites, type Writer } from '../../sidecar/couch/writer.ts'
import { isCouchError } from '../../sidecar/couch/couch-errors.ts'
import { createTestCouch, freshDb, needs } from '../support/couchdb.ts'
import { cutAfterUpstream, refuse, startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'

const isBulk = (request: SeenRequest) => request.path.endsWith('/_bulk_docs')
const sizeOf = (request: SeenRequest) => (JSON.parse(request.body) as { docs: unknown[] }).docs.length

async function setUp() {
  const db = await freshDb('writer')
  const proxy = await startFaultyProxy()
  const writer = createWriter(createTestCouch({ url: proxy.url }).db(db.name), { signal: new AbortController().signal })
  return { db, proxy, writer, batches: () => proxy.requests.filter(isBulk).map(sizeOf) }
}

test('writes that are ready together share a request, and a single write is sent at once', async () => {
  const { writer, batches } = await setUp()
  expect(await writer.write({ _id: 'first' })).toMatchObject({ kind: 'stored' })
  expect(batches()).toEqual([1])
  await Promise.all(Array.from({ length: 50 }, (_, i) => writer.write({ _id: `d${i}` })))
  expect(batches()).toEqual([1, 50])
})

test('writes that become ready during a request go with the next one', async () => {
  const { writer, batches } = await setUp()
  const first = writer.write({ _id: 'a' })
  const late = new Promise<unknown>((resolve) => {
    setTimeout(() => resolve(Promise.all([writer.write({ _id: 'b' }), writer.write({ _id: 'c' })])), 0)
  })
  await Promise.all([first, late])
  expect(batches().reduce((sum, size) => sum + size, 0)).toBe(3)
  expect(batches().length).toBeLessThanOrEqual(2)
})

test('writers that share turns send in turn, each with all its waiting writes', async () => {
  const { db, proxy, batches } = await setUp()
  const [turns, { signal }] = [new Semaphore(() => 1), new AbortController()]
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  const [a, b, c] = [1, 2, 3].map(() => createWriter(through, { signal, turns })) as [Writer, Writer, Writer]
  const sent: string[] = []
  const write = (writer: Writer, _id: string, first = false) =>
    writer.write({ _id }, { first, onSent: () => sent.push(_id) })
  await turns.enter()
  const all = [write(a, 'a1'), write(b, 'b1'), write(c, 'c1'), write(b, 'b2', true), write(a, 'a2')]
  await new Promise(setImmediate)
  expect(sent).toEqual([])
  turns.leave()
  expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(all.map(() => 'stored'))
  expect(sent).toEqual(['b2', 'b1', 'a1', 'a2', 'c1'])
  expect(batches()).toEqual([2, 2, 1])
  await turns.enter() // all turns are free again
})

test('writes with priority are in the first request if one request cannot hold all writes', async () => {
  const { proxy, writer, batches } = await setUp()
  const begun = Array.from({ length: 1100 }, (_, i) => writer.write({ _id: `d${i}` }))
  await Promise.all([...begun, writer.write({ _id: 'end' }, { first: true })])
  expect(batches()).toEqual([1000, 101])
  expect(proxy.requests.find(isBulk)!.body).toContain('"end"')
})

test('writes with priority cannot delay forever a write that is too large to share a request', async () => {
  const { proxy, writer } = await setUp()
  const [big, small] = ['x'.repeat(3 * 1024 * 1024), 'y'.repeat(2.5 * 1024 * 1024)]
  const first = (_id: string, onSent?: () => void) =>
    writer.write({ _id, text: small }, { first: true, ...(onSent && { onSent }) })
  const steady: Promise<unknown>[] = []
  // Of two such writes, one always waits.
  const begin = (a: string, b: string, c: string) => first(a, () => steady.push(first(b, () => steady.push(first(c)))))
  await Promise.all([begin('f1', 'f2', 'f3'), begin('g1', 'g2', 'g3'), writer.write({ _id: 'big', text: big })])
  for (const write of steady) await write // each write has begun the next
  const idsIn = ({ body }: SeenRequest) => (JSON.parse(body) as { docs: { _id: string }[] }).docs.map(({ _id }) => _id)
  expect(proxy.requests.filter(isBulk).map(idsIn)).toEqual([['f1'], ['big'], ['g1'], ['f2'], ['g2'], ['f3'], ['g3']])
})

test('an aborted write that waits for its turn is not sent, and no write outlives its writer', async () => {
  const { db, batches, proxy } = await setUp()
  const [turns, ending, calledOff] = [new Semaphore(() => 1), new AbortController(), new AbortController()]
  const through = createTestCouch({ url: proxy.url }).db(db.name)
  const writer = createWriter(through, { signal: ending.signal, turns })
  await turns.enter()
  const [off, on] = [writer.write({ _id: 'off' }, { signal: calledOff.signal }), writer.write({ _id: 'on' })]
  calledOff.abort(new Error('called off'))
  turns.leave()
  await expect(off).rejects.toThrow('called off')
  expect(await on).toMatchObject({ kind: 'stored' })
  await turns.enter()
  const late = writer.write({ _id: 'late' }, { first: true })
  ending.abort(new Error('it is over'))
  await expect(late).rejects.toThrow('it is over')
  await expect(writer.write({ _id: 'later' })).rejects.toThrow('it is over')
  turns.leave()
  await turns.enter() // the turn is free
  expect(batches()).toEqual([1])
  expect(await db.getMany(['off', 'on', 'late', 'later'])).toHaveLength(1)
})

test('each write gets its own outcome', async () => {
  const { db, writer } = await setUp()
  const guard = `function (doc) { if (doc.bad) throw { forbidden: 'no ' + doc.bad } }`
  await db.put({ _id: '_design/guard', validate_doc_update: guard })
  await db.put({ _id: 'there' })
  const written = await Promise.all([
    writer.write({ _id: 'good' }),
    writer.write({ _id: 'there' }),
    writer.write({ _id: 'evil', bad: 'apples' }),
    writer.write({ _id: 'also-good' }),
  ])
  expect(written.map(({ kind }) => kind)).toEqual(['stored', 'conflict', 'refused', 'stored'])
  expect(written[2]).toMatchObject({ code: 'forbidden', reason: 'no apples' })
  expect((await db.get('good'))._rev).toBe((written[0] as { rev: string }).rev)
})

test('two writes of one document never share a request', async () => {
  const { db, writer, batches } = await setUp()
  const [one, two] = await Promise.all([writer.write({ _id: 'x', n: 1 }), writer.write({ _id: 'x', n: 2 })])
  expect([one.kind, two.kind]).toEqual(['stored', 'conflict'])
  expect(batches()).toEqual([1, 1])
  expect(await db.get('x')).toMatchObject({ n: 1 })
})

test('a document without JSON is refused alone', async () => {
  const { writer } = await setUp()
  const [good, bad] = await Promise.all([writer.write({ _id: 'a' }), writer.write({ _id: 'b', big: 1n })])
  expect(good.kind).toBe('stored')
  expect(bad).toMatchObject({
    kind: 'refused',
    code: 'bad_request',
    reason: expect.stringContaining('BigInt') as unknown,
  })
})

test('a batch that is too large is halved until it succeeds, and a single oversized document is refused', async () => {
  const { proxy, writer } = await setUp()
  proxy.plan((request) => (isBulk(request) && sizeOf(request) > 3 ? refuse(413) : undefined))
  const written = await Promise.all(Array.from({ length: 20 }, (_, i) => writer.write({ _id: `d${i}` })))
  expect(written.every(({ kind }) => kind === 'stored')).toBe(true)
  proxy.plan((request) => (isBulk(request) ? refuse(413) : undefined))
  expect(await writer.write({ _id: 'huge' })).toMatchObject({ kind: 'refused', code: 'too_large' })
})

test('a lost answer is thrown, since the outcome is unknown', async () => {
  const { db, proxy, writer } = await setUp()
  proxy.next(cutAfterUpstream, isBulk)
  const thrown = await writer.write({ _id: 'a' }).catch((error: unknown) => error)
  expect(isCouchError(thrown, 'unreachable')).toBe(true)
  expect(await db.find('a')).toBeDefined()
  expect(await writer.write({ _id: 'b' }), 'the next write succeeds').toMatchObject({ kind: 'stored' })
})

test('a document that fails the whole request is found and refused alone', async () => {
  needs('bulk fields checked')
  const { db, writer } = await setUp()
  const docs = Array.from({ length: 9 }, (_, i) => ({ _id: `d${i}`, ...(i === 4 && { _oops: 'no such field' }) }))
  const written = await Promise.all(docs.map((doc) => writer.write(doc)))
  expect(written.map(({ kind }) => kind)).toEqual(docs.map(({ _oops }) => (_oops ? 'refused' : 'stored')))
  expect(await db.getMany(docs.map(({ _id }) => _id))).toHaveLength(8)
})

test('a missing attachment refuses only its document, and may leave the outcome of others unknown', async () => {
  const { db, writer } = await setUp()
  const _attachments = { 'x.txt': { stub: true, content_type: 'text/plain', revpos: 1, length: 1, digest: 'md5-aaaa' } }
  const [good, bad] = await Promise.allSettled([
    writer.write({ _id: 'good' }),
    writer.write({ _id: 'bad', _attachments }),
  ])
  expect(bad).toMatchObject({ value: { kind: 'refused', code: 'bad_request' } })
  if (good.status === 'rejected') expect(isCouchError(good.reason, 'garbled')).toBe(true)
  else expect(good.value).toMatchObject({ kind: 'stored' })
  expect(await db.find('good')).toBeDefined()
})

test('the writer counts requests and the outcomes of their documents', async () => {
  const { db, proxy } = await setUp()
  const counts = noWrites()
  const behind = createTestCouch({ url: proxy.url }).db(db.name)
  const writer = createWriter(behind, { signal: new AbortController().signal, counts })
  await db.put({ _id: 'there' })
  await Promise.all([writer.write({ _id: 'a' }), writer.write({ _id: 'b' }), writer.write({ _id: 'there' })])
  expect(counts).toEqual({ ...noWrites(), requests: 1, stored: 2, conflict: 1 })
  proxy.next(cutAfterUpstream, isBulk)
  await writer.write({ _id: 'c' }).catch(() => undefined)
  expect(counts).toMatchObject({ requests: 2, stored: 2, unknown: 1 })
  proxy.plan((request) => (isBulk(request) ? refuse(413) : undefined))
  await Promise.all([writer.write({ _id: 'd' }), writer.write({ _id: 'e' })])
  expect(counts, 'one request for both, then one for each').toMatchObject({ requests: 5, refused: 2 })
})
