/** Sync in one direction continues when the server refuses documents, or everything, in the other. */
import { expect, test } from 'vitest'
import { openRemote } from '../../client/src/sync/remote.ts'
import { runSession, type Ended } from '../../client/src/sync/session.ts'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, type SeenRequest } from '../support/faulty-proxy.ts'
import { page, startReplica, type Replica } from './replica.ts'

/** A lone surrogate: half an emoji, as in a text that was cut. */
const HALF = '\ud83d'

function begin({ here, target, PouchDB }: Replica, live = false) {
  const stopping = new AbortController()
  const refused: string[] = []
  let ended: Ended | undefined
  const running = runSession({
    ...{ local: here, remote: openRemote(PouchDB, target), live, signal: stopping.signal },
    ...{ onCopied() {}, onEven() {}, onRefused: (id, reason) => void refused.push(`${id}: ${reason}`) },
  }).then((end) => (ended = end))
  return { refused, running, stop: () => stopping.abort(), ended: () => ended }
}

const writes = ({ path }: SeenRequest) => path.endsWith('/_bulk_docs')

async function writeNotes({ here }: Replica, count: number): Promise<void> {
  await here.bulkDocs(Array.from({ length: count }, (_, number) => ({ _id: `note ${number}` })))
}

test('a document with a lone surrogate is reported, stops no other, and is sent after its repair', async () => {
  needs('bulk fields checked')
  const replica = await startReplica()
  const { here, there } = replica
  await writeNotes(replica, 30)
  const { rev } = await here.put({ _id: 'cut', text: `so glad ${HALF}` })
  await there.put({ _id: 'from there' })
  const { refused, running } = begin(replica)
  expect(await running).toEqual({ kind: 'done' })
  expect(refused).toEqual([expect.stringMatching(/^cut: 400 /)])
  expect((await there.info()).doc_count).toBe(31)
  expect(await here.get('from there')).toMatchObject({ _id: 'from there' })

  await here.put({ _id: 'cut', _rev: rev, text: 'so glad' })
  const again = begin(replica)
  expect(await again.running).toEqual({ kind: 'done' })
  expect(again.refused).toEqual([])
  expect(await there.get('cut')).toMatchObject({ text: 'so glad' })
})

test('a document that is too large is reported, and does not stop others', async () => {
  needs('size limit')
  const replica = await startReplica()
  await writeNotes(replica, 5)
  await replica.here.put({ _id: 'large', text: 'x'.repeat(9_000_000) })
  const { refused, running } = begin(replica)
  expect(await running).toEqual({ kind: 'done' })
  expect(refused).toEqual([expect.stringMatching(/^large: 413 /)])
  expect((await replica.there.info()).doc_count).toBe(5)
})

test('a batch that is too large for a proxy is sent in parts', async () => {
  const replica = await startReplica()
  const { here, there, proxy } = replica
  await writeNotes(replica, 30)
  await here.put({ _id: 'large', text: 'x'.repeat(2000) })
  proxy.plan((request) => (writes(request) && request.body.length > 1000 ? page(413) : undefined))
  const { refused, running } = begin(replica)
  expect(await running).toEqual({ kind: 'done' })
  expect(refused).toEqual([expect.stringMatching(/^large: 413 /)])
  expect((await there.info()).doc_count).toBe(30)
})

test('a document with an id that CouchDB cannot parse is reported as refused', async () => {
  const replica = await startReplica()
  const { there, proxy } = replica
  await writeNotes(replica, 4)
  const isCut = ({ body }: SeenRequest) => body.includes('"note 2"')
  const asks = ({ path }: SeenRequest) => path.endsWith('/_revs_diff')
  const words = { error: 'bad_request', reason: 'invalid UTF-8 JSON' }
  proxy.plan((request) => ((asks(request) || writes(request)) && isCut(request) ? refuse(400, words) : undefined))
  const { refused, running } = begin(replica)
  expect(await running).toEqual({ kind: 'done' })
  expect(refused).toEqual(['note 2: 400 bad_request: invalid UTF-8 JSON'])
  expect((await there.info()).doc_count).toBe(3)
})

test.each([
  ['a JSON error', refuse(400, { error: 'bad_request', reason: 'not now' })],
  ['an HTML page', page(400)],
])(
  'a server that answers every write with %s does not make the client report a refused document',
  async (_how, fault) => {
    const replica = await startReplica()
    const { there, proxy } = replica
    await writeNotes(replica, 3)
    proxy.plan((request) => (writes(request) ? fault : undefined))
    const { refused, running } = begin(replica)
    expect(await running).toMatchObject({
      kind: 'failed',
      failure: { reason: expect.stringContaining('400') as string },
    })
    expect(refused).toEqual([])
    proxy.plan(() => undefined)
    expect(await begin(replica).running).toEqual({ kind: 'done' })
    expect((await there.info()).doc_count).toBe(3)
  },
)

test.each([false, true])('a session reads remote documents although all its writes fail (live: %s)', async (live) => {
  const replica = await startReplica()
  const { here, there, proxy } = replica
  for (let number = 0; number < 250; number++) await there.put({ _id: `from there ${number}` })
  await writeNotes(replica, 3)
  proxy.plan((request) => (writes(request) ? refuse(500) : undefined))
  const { running } = begin(replica, live)
  expect(await running).toMatchObject({ kind: 'failed', failure: { code: 'failed' } })
  expect((await here.info()).doc_count).toBe(253)
})

test('a live session ends as a whole when one direction fails', async () => {
  const replica = await startReplica()
  const { here, proxy } = replica
  const session = begin(replica, true)
  await eventually(() => expect(proxy.requests.some(({ query }) => query.get('feed') === 'longpoll')).toBe(true))
  proxy.plan((request) => (writes(request) ? refuse(500) : undefined))
  await here.put({ _id: 'note' })
  await eventually(() => expect(session.ended()).toMatchObject({ kind: 'failed' }))
  await eventually(() => expect(proxy.openConnections).toBe(0))
})
