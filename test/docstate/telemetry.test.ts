/** The events that the engine publishes. */
import pino from 'pino'
import { expect, test } from 'vitest'
import { createEvents } from '../../sidecar/events/channels.ts'
import { EVENTS } from '../../sidecar/events/catalogue.ts'
import type { EventMap } from '../../sidecar/events/map.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import { Reject } from '../../sidecar/core/errors.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { replicate } from './conflicts/branches.ts'
import { startRig, stateOf } from './rig.ts'

/** Subscribes to all events and records each name and event in order. */
function listenToAll() {
  const events = createEvents({ log: pino({ level: 'silent' }) })
  const received: (readonly [string, Record<string, unknown>])[] = []
  for (const name of Object.keys(EVENTS) as (keyof EventMap)[]) {
    events.subscribe(name, ({ event }) => void received.push([name, event as never]))
  }
  const named = (name: string) => received.flatMap(([received, event]) => (received === name ? [event] : []))
  return { events, received, named }
}

const invoice = (control: Control) =>
  control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))

const paid = { type: 'order', state: 'paid' }

test('an unsafe handler publishes the events of its claim, start, end and save with all fields', async () => {
  const db = await freshDb('life')
  const { events, received } = listenToAll()
  await startRig(db, invoice, { events })
  await db.put({ ...paid, _id: 'o' })
  await eventually(() => expect(received.map(([name]) => name)).toContain('entry:ended'))
  const of = { database: db.name, id: 'o', ...paid }
  const [rev, key, ms] = [(await db.get('o'))._rev, expect.any(String) as string, expect.any(Number) as number]
  expect(received).toEqual([
    ['feed:connected', { database: db.name }],
    ['claim:won', of],
    ['handler:started', { ...of, key }],
    ['handler:ended', { ...of, outcome: 'next', ms }],
    ['document:saved', { ...of, next: 'invoiced', rev }],
    [
      'entry:ended',
      {
        ...{ ...of, next: 'invoiced', rev, key, mode: 'unsafe', ms, attempts: 0, version: null },
        ...{ code: null, reason: null },
      },
    ],
  ])
})

test('failed attempts, the last failure and a Reject publish document:failed', async () => {
  const db = await freshDb('life')
  const { events, named } = listenToAll()
  await startRig(
    db,
    (control) =>
      control.safe(
        'order',
        'paid',
        async ({ _id }) => {
          throw _id === 'bad' ? new Reject('bad', 'no good') : new Error('not yet')
        },
        { attempts: 2, backoff: { baseMs: 1, capMs: 1 } },
      ),
    { events },
  )
  await db.put({ ...paid, _id: 'bad' })
  await eventually(() => expect(named('document:failed')).toHaveLength(1))
  await db.put({ ...paid, _id: 'o' })
  await eventually(() => expect(named('document:failed')).toHaveLength(3))
  const of = (id: string) => ({ database: db.name, id, ...paid })
  expect(named('document:failed')).toEqual([
    { ...of('bad'), code: 'bad', reason: 'no good', attempts: 1, retry_at: null },
    { ...of('o'), code: 'Error', reason: 'not yet', attempts: 1, retry_at: expect.any(String) as string },
    { ...of('o'), code: 'Error', reason: 'not yet', attempts: 2, retry_at: null },
  ])
  expect(named('handler:ended').map(({ outcome }) => outcome)).toEqual(['rejected', 'failed', 'failed'])
})

test('the document of a dead worker publishes claim:inherited and document:parked', async () => {
  const db = await freshDb('life')
  const { events, named } = listenToAll()
  const claim = { worker: 'dead', token: 'x/1', at: new Date(0).toISOString(), lease_ms: 300 }
  await db.put({ ...paid, _id: 'o', docstate: { state: 'paid', entry: '1-0', claim } })
  await startRig(db, invoice, { events })
  await eventually(() => expect(named('document:parked')).toHaveLength(1))
  const of = { database: db.name, id: 'o', ...paid }
  expect(named('claim:inherited')).toEqual([{ ...of, worker: 'dead' }])
  expect(named('document:parked')).toEqual([{ ...of, reason: expect.stringContaining('dead') as string }])
})

test('ctx.save publishes document:saved, and a merge publishes conflict:resolved', async () => {
  const db = await freshDb('life')
  const { events, named } = listenToAll()
  await startRig(
    db,
    (control) => {
      invoice(control)
      control.safe('note', 'new', async (note, ctx) => void (await ctx.save({ ...note, state: 'kept' })))
    },
    { events },
  )
  await db.put({ _id: 'n', type: 'note', state: 'new' })
  await eventually(() => expect(named('document:saved')).toMatchObject([{ id: 'n', state: 'new', next: 'kept' }]))
  const first = await db.put({ ...paid, _id: 'o' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await replicate(db, first, 1, { ...paid, _id: 'o', note: 'device' })
  await eventually(() => expect(named('conflict:resolved')).toMatchObject([{ id: 'o', branches: 2 }]))
})

test('a broken feed publishes feed:broken and then feed:connected', async () => {
  const db = await freshDb('life')
  const proxy = await startFaultyProxy()
  const { events, received } = listenToAll()
  await startRig(createTestCouch({ url: proxy.url }).db(db.name), invoice, { events })
  await eventually(() => expect(received).toHaveLength(1))
  proxy.next(refuse(503), ({ path }) => path.endsWith('/_changes'))
  proxy.dropConnections()
  const refused = { database: db.name, code: 'overloaded', retry_in_ms: expect.any(Number) as number }
  await eventually(() => {
    // One event for the refusal, and one for the dropped connection if a request was open.
    const broken = received.filter(([name]) => name === 'feed:broken')
    expect(broken.map(([, event]) => event)).toContainEqual(expect.objectContaining(refused))
    expect(received.at(-1)![0]).toBe('feed:connected')
  })
})
