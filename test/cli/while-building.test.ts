import { expect, test } from 'vitest'
import { whileBuilding } from '../../sidecar/cli/while-building.ts'
import { countDocuments } from '../../sidecar/docstate/operator/count-documents.ts'
import { createLatch } from '../docstate/rig.ts'
import { installDocstate } from '../docstate/install.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { pass, refuse, startFaultyProxy, type Fault, type SeenRequest } from '../support/faulty-proxy.ts'

const isView = ({ path }: SeenRequest) => path.includes('/_view/by_state')
const isTasks = ({ path }: SeenRequest) => path.includes('/_active_tasks')

/** The server's active tasks. Its own tasks may be among them: ken builds each stale index. */
const answer = (tasks: readonly object[]) => refuse(200, tasks as unknown as { error: string; reason: string })

/** A count whose index is not ready until `ready` opens; `tasks` is the server's answer about its tasks. */
async function count(tasks: (database: string) => Fault) {
  const { name: database, ...db } = await freshDb('built')
  await installDocstate({ name: database, ...db }, {})
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const [ready, stopping] = [createLatch(), new AbortController()]
  const slowly: Fault = (exchange) => ready.opened.then(() => pass(exchange))
  proxy.plan((request) => (isView(request) ? slowly : isTasks(request) ? tasks(database) : undefined))
  const notes: string[] = []
  const terminal = { note: (text: string) => void notes.push(text), signal: stopping.signal }
  const counting = countDocuments(couch.db(database), stopping.signal)
  const counted = whileBuilding(counting, { couch, database, terminal, everyMs: 20 })
  counted.catch(() => undefined) // a failed test does not await it
  return { database, proxy, ready, stopping, notes, counted }
}

const counts = { counts: [{ type: 'order', state: 'paid', status: 'ready', count: 1 }], stuck: [] }

test('a count waits for its index, and reports the progress', async () => {
  const { database, ready, notes, counted } = await count((name) => {
    const task = { type: 'indexer', design_document: '_design/docstate', changes_done: 10, total_changes: 300 }
    const shards = ['00000000-7fffffff', '80000000-ffffffff'].map((range) => `shards/${range}/${name}.1767225600`)
    const others = [{ type: 'view_compaction' }, { ...task, database: `shards/00000000-7fffffff/${name}x.1767225600` }]
    return answer([...others, ...shards.map((database) => ({ ...task, database }))])
  })
  const received = `CouchDB is building the index of ${database}: 20 of 600 changes; waiting (press Ctrl-C to stop)`
  await eventually(() => expect(notes).toContain(received))
  ready.open()
  expect(await counted).toEqual(counts)
})

test('a count reports that it waits, even without access to the active tasks', async () => {
  const { database, ready, notes, counted } = await count(() => refuse(401))
  await eventually(() =>
    expect(notes[0]).toContain(`CouchDB has not answered for ${database} yet and may be building an index`),
  )
  ready.open()
  expect(await counted).toEqual(counts)
})

test('a count ends at once when its signal aborts', async () => {
  const { database, ready, stopping, notes, counted } = await count(() => answer([]))
  await eventually(() =>
    expect(notes[0]).toBe(`CouchDB has not answered for ${database} yet; waiting (press Ctrl-C to stop)`),
  )
  stopping.abort(new Error('enough'))
  await expect(counted).rejects.toThrow('enough')
  ready.open()
})

test('a count repeats its request when CouchDB gives up on it', async () => {
  const { proxy, ready, counted } = await count(() => pass)
  proxy.next(
    refuse(500, { error: 'timeout', reason: 'The request could not be processed in a reasonable time.' }),
    isView,
  )
  ready.open()
  expect(await counted).toEqual(counts)
})
