import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { actOnAll, actOnOne, retry } from '../../sidecar/docstate/operator/actions.ts'
import { countDocuments } from '../../sidecar/docstate/operator/count-documents.ts'
import { eventually } from '../support/eventually.ts'
import { freshDb } from '../support/couchdb.ts'
import { createLatch, docstateIn, startRig, stateOf } from './rig.ts'

/** A document whose worker died during its handler. */
const abandoned = (id: string) => ({
  _id: id,
  type: 'order',
  state: 'paid',
  docstate: {
    state: 'paid',
    entry: '1-entry',
    claim: { worker: 'dead', token: 'of the dead', at: '2020-01-01T00:00:00.000Z', lease_ms: 1000 },
  },
})

const start = (db: Database, onLost: 'park' | 'retry', runs: { key: string; attempt: number }[], attempts = 10) =>
  startRig(db, (control) =>
    control.unsafe(
      'order',
      'paid',
      (doc, { key, attempt }) => {
        runs.push({ key, attempt })
        return Promise.resolve({ ...doc, state: 'invoiced' })
      },
      { onLost, attempts },
    ),
  )

test('a document whose worker died is parked, and an operator retries it', async () => {
  const db = await freshDb('lost')
  await db.put(abandoned('o'))
  const runs: { key: string; attempt: number }[] = []
  await start(db, 'park', runs)
  await eventually(async () =>
    expect(docstateIn(await db.get('o'))?.parked).toMatchObject({ reason: expect.stringContaining('dead') as string }),
  )
  expect(runs).toEqual([])
  expect(docstateIn(await db.get('o'))).not.toHaveProperty('claim')

  expect(await actOnOne(db, 'o', retry)).toMatchObject({ kind: 'done', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await db.put({ ...abandoned('p'), docstate: { state: 'paid', entry: '1-entry' } })
  await eventually(() => expect(runs).toHaveLength(2))
  expect(runs[0]!.key).not.toBe(runs[1]!.key)
})

test('with onLost retry, another worker runs the document again, and the lost attempt counts', async () => {
  const db = await freshDb('lost')
  await db.put(abandoned('o'))
  const runs: { key: string; attempt: number }[] = []
  await start(db, 'retry', runs)
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(runs).toEqual([{ key: expect.any(String) as string, attempt: 2 }])
})

test.each(['park', 'retry'] as const)(
  'a document whose dead worker had not started the handler runs as its first attempt (%s)',
  async (onLost) => {
    const db = await freshDb('lost')
    const { docstate, ...doc } = abandoned('o')
    await db.put({ ...doc, docstate: { ...docstate, claim: { ...docstate.claim, begun: false } } })
    const runs: { key: string; attempt: number }[] = []
    await start(db, onLost, runs)
    await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
    expect(runs).toEqual([{ key: expect.any(String) as string, attempt: 1 }])
  },
)

test('documents of lost workers run one at a time, in parallel with other documents', async () => {
  const db = await freshDb('lost')
  const docs = Array.from({ length: 6 }, (_, i) =>
    i < 3 ? abandoned(`lost${i}`) : { ...abandoned(`new${i}`), docstate: {} },
  )
  await db.bulk(docs.map((doc) => JSON.stringify(doc)))
  const [running, most] = [
    { lost: 0, new: 0 },
    { lost: 0, new: 0 },
  ]
  const release = createLatch()
  const handler = async (doc: StoredDoc) => {
    const kind = doc._id.startsWith('lost') ? 'lost' : 'new'
    most[kind] = Math.max(most[kind], ++running[kind])
    if (kind === 'new') await release.opened
    await sleep(50)
    running[kind] -= 1
    return { ...doc, state: 'invoiced' }
  }
  const backoff = { baseMs: 1, capMs: 1 }
  await startRig(db, (control) => control.unsafe('order', 'paid', handler, { onLost: 'retry', backoff }))
  const states = async () => (await db.getMany(docs.map(({ _id }) => _id))).map(({ state }) => state)
  await eventually(async () => expect((await states()).slice(0, 3)).toEqual(['invoiced', 'invoiced', 'invoiced']))
  expect(most).toEqual({ lost: 1, new: 3 })
  release.open()
  await eventually(async () => expect(new Set(await states())).toEqual(new Set(['invoiced'])))
})

test('a document that kills its worker at each attempt ends in error', async () => {
  const db = await freshDb('lost')
  await db.put(abandoned('o'))
  await start(db, 'retry', [], 1)
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({ code: 'lost' })
})

test('invalid data in the docstate field neither stops the engine nor hides the document', async () => {
  const db = await freshDb('lost')
  const garbage: unknown[] = [
    null,
    1,
    'x',
    [],
    {},
    { state: 'paid', claim: 'me' },
    { state: 'paid', attempts: -1, retry_at: 'soon' },
  ]
  garbage.push({ state: 'paid', claim: { token: 1, lease_ms: 'long' } }, { state: 'paid', done: 3, failure: 'x' })
  await db.bulk(garbage.map((docstate, i) => JSON.stringify({ _id: `g${i}`, type: 'order', state: 'paid', docstate })))
  await start(db, 'park', [])
  await eventually(async () => {
    const { rows } = await viewOf(db, 'docstate', 'by_state', { group_level: 2 })
    expect(rows).toEqual([{ key: ['order', 'invoiced'], value: garbage.length }])
  })
})

test('a bulk retry covers all stuck documents of the given type', async () => {
  const db = await freshDb('lost')
  const parked = (type: string) => ({
    type,
    state: 'paid',
    docstate: { state: 'paid', parked: { at: 'x', reason: 'y' } },
  })
  await db.put({ _id: 'a', ...parked('order') })
  await db.put({ _id: 'b', ...parked('bill') })
  const error = { code: 'x', reason: 'y', at: 'z' }
  await db.put({ _id: 'c', type: 'order', state: 'error', error, docstate: { state: 'error', failed_in: 'paid' } })
  await db.put({ _id: 'd', type: 'order', state: 'error', error })
  await (await startRig(db, () => undefined)).stop()
  const retried = []
  const all = { database: db, counted: await countDocuments(db), action: retry, now: Date.now() }
  for await (const results of actOnAll({ ...all, filter: { type: 'order' } }))
    retried.push(...results.map(({ id }) => id))
  expect(retried.sort()).toEqual(['a', 'c'])
  expect(await db.get('c')).toMatchObject({ state: 'paid', docstate: { state: 'paid' } })
  expect(await db.get('c')).not.toHaveProperty('error')
  expect(await actOnOne(db, 'd', retry)).toEqual({ kind: 'nothing-to-do', id: 'd', state: 'error' })
  expect(await actOnOne(db, 'nowhere', retry)).toEqual({ kind: 'not-found', id: 'nowhere' })
})
