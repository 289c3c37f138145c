import { expect, onTestFinished, test } from 'vitest'
import pino from 'pino'
import { systemClock, type Clock } from '../../sidecar/core/clock.ts'
import { Entry } from '../../sidecar/indexes/entry.ts'
import { keepNotes, readNotes } from '../../sidecar/indexes/notes.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'

/** A clock with shorter sleeps: 10 s take 20 ms. */
const clock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 500, signal) }
const index = { database: 'orders', ddoc: '_design/sales', kind: 'view', name: 'by_total', rev: '1-a' } as const

async function start(entries: Entry[]) {
  const database = await freshDb('control')
  const stopping = new AbortController()
  const indexes = { entries: () => entries }
  const options = { indexes, database, worker: 'one', clock, log: pino({ level: 'silent' }) }
  const keeping = keepNotes(options, stopping.signal)
  const stop = async () => {
    stopping.abort()
    await keeping
  }
  onTestFinished(stop)
  const { signal } = new AbortController()
  return { read: () => readNotes(database, ['one', 'nobody'], signal), database, stop }
}

test('a note records an index that is stale for a while, and its recovery', async () => {
  const late = new Entry(index, Date.now() - 60_000)
  const { read } = await start([late, new Entry({ ...index, database: 'new' }, Date.now())])
  await eventually(async () =>
    expect(await read()).toMatchObject([{ worker: 'one', indexes: 2, behind: [{ db_name: 'orders', index: null }] }]),
  )
  late.confirm(Date.now(), undefined)
  await eventually(async () => expect(await read()).toMatchObject([{ indexes: 2, behind: [] }]))
})

test('no note is written while nothing changes', async () => {
  const fresh = new Entry(index, Date.now())
  fresh.confirm(Date.now(), undefined)
  const { read, database } = await start([fresh])
  await eventually(async () => expect(await read()).toHaveLength(1))
  const revOf = async () => (await database.find('_local/indexes:one'))!._rev
  const before = await revOf()
  await clock.sleep(100_000, new AbortController().signal)
  expect(await revOf()).toBe(before)
})
