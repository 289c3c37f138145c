/** Temporary errors of single documents in `_bulk_docs`, caused by validation processes that die. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { createTestCouch, freshDb, needs, startPrivateCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { checkersOf } from '../support/processes.ts'
import { thoroughTest } from '../support/thorough.ts'
import { startRig, stateOf } from './rig.ts'

/** A slow validation, so that its process is killed while it runs. */
const GUARD = 'function (doc) { for (var i = 0; i < 200000; i++) if (doc.bad) throw { forbidden: "no" } }'

/** Kills the validation processes during some requests, and counts the failed rows of claims and results. */
function killChecking(db: Database, server: number) {
  const rows = { claims: 0, results: 0 }
  let requests = 0
  const bulk: Database['bulk'] = async (docs, options) => {
    let isAnswered = false
    const answer = db.bulk(docs, options).finally(() => (isAnswered = true))
    answer.catch(() => undefined) // the answer is awaited below
    for (const kills = requests++ % 4 === 0; kills && !isAnswered; await sleep(10)) {
      for (const { pid } of checkersOf(server)) process.kill(pid, 'SIGKILL')
    }
    const isClaim = new Set(docs.filter((doc) => doc.includes('"claim"')).map((doc) => (JSON.parse(doc) as Doc)._id))
    for (const { id, error } of await answer) {
      if (error === 'os_process_error') rows[isClaim.has(id) ? 'claims' : 'results'] += 1
    }
    return answer
  }
  return { database: { ...db, bulk }, rows }
}

const ENOUGH = 5

thoroughTest('every document gets its result when validation processes are killed under load', async () => {
  needs('private server')
  needs('process table')
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const db = createTestCouch({ url: server.url }).db('killed')
  await db.create()
  await db.put({ _id: '_design/guard', validate_doc_update: GUARD })
  const { database, rows } = killChecking(db, server.pid)
  const effects = new Map<string, number>()
  await startRig(database, (control) =>
    control.unsafe('order', 'paid', async (doc) => {
      effects.set(doc._id, (effects.get(doc._id) ?? 0) + 1)
      return { ...doc, state: 'invoiced' }
    }),
  )
  const put: string[] = []
  while (rows.claims < ENOUGH || rows.results < ENOUGH) {
    expect(put.length, 'documents written, with too few rows of killed processes').toBeLessThan(1000)
    const some = Array.from({ length: 20 }, (_, i) => ({ _id: `o${put.length + i}`, type: 'order', state: 'paid' }))
    // The validation process of this write may be killed, too.
    for (const doc of some) await eventually(() => db.put(doc))
    put.push(...some.map(({ _id }) => _id))
  }
  const unfinished = async () => (await db.getMany(put)).filter(({ state }) => state !== 'invoiced')
  await eventually(async () => expect(await unfinished()).toEqual([]), { within: 120_000 })
  expect([...effects].filter(([, times]) => times !== 1)).toEqual([])
})

test('a claim that CouchDB cannot validate does not delay other claims, and is counted as refused', async () => {
  const db = await freshDb('passing')
  await db.bulk(['bad', 'good'].map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
  // Fails like a process that dies during validation: the document is neither accepted nor forbidden.
  await db.put({
    _id: '_design/guard',
    validate_doc_update: 'function (doc) { if (doc._id === "bad") throw "what?" }',
  })
  const { engine } = await startRig(db, (control) =>
    control.unsafe('order', 'paid', async (doc) => ({ ...doc, state: 'invoiced' }), { concurrency: 1 }),
  )
  await eventually(async () => expect(await stateOf(db, 'good')).toBe('invoiced'))
  await eventually(() => expect([...engine.counts.handlers()][0]!.counts.claims.refused).toBe(1))
  expect(await db.get('bad')).not.toHaveProperty('docstate')
})
