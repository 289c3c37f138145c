import { expect, test } from 'vitest'
import { createAgain, deleteDb, makeAgain, needs } from '../support/couchdb.ts'
import { eventually, PATIENCE_MS } from '../support/eventually.ts'
import {
  cut,
  cutAfterBytes,
  inject,
  inPieces,
  late,
  refuse,
  silence,
  type Fault,
  type SeenRequest,
} from '../support/faulty-proxy.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createLiveBehindProxy, defaults, isFeed, isLook, set, startLive } from './rig.ts'

const MINUTE_MS = 60_000 // with the jitter of the rig

test.each<[string, Fault]>([
  ['refused', refuse(500)],
  ['cut before the answer', cut],
  ['cut in the middle of a row', cutAfterBytes(30)],
  ['garbled', inject('<html>502 Bad Gateway</html>\n')],
  ['cut into single bytes', inPieces(1)],
])('a feed that is %s loses no setting', async (_, fault) => {
  const { db, proxy, start, now } = await createLiveBehindProxy()
  await set(db, { max_event_delay: 50 })
  for (let times = 0; times < 3; times++) proxy.next(fault, isFeed)
  await start()
  for (const max_event_delay of [60, 70, 80]) {
    await set(db, { max_event_delay })
    await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay }))
    proxy.next(fault, isFeed)
    proxy.dropConnections()
  }
})

test('a setting written while CouchDB is down applies after its return', async () => {
  const { db, proxy, start, now } = await createLiveBehindProxy()
  await set(db, { max_event_delay: 50 })
  await start()
  await proxy.down()
  await set(db, { max_event_delay: 60 })
  expect(now()).toEqual({ ...defaults, max_event_delay: 50 })
  await proxy.up()
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 60 }))
})

test('the start waits for a CouchDB that is down and assumes no setting', async () => {
  const { db, proxy, live, signal, start, now } = await createLiveBehindProxy()
  await set(db, { update_db: false })
  await proxy.down()
  let known = false
  const started = start().then(() => (known = true))
  const impatient = new AbortController()
  const waiting = live.whenKnown(impatient.signal)
  impatient.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  expect(known).toBe(false)
  await proxy.up()
  await started
  expect(now().update_db).toBe(false)
  await live.whenKnown(signal)
})

test('a missing database has no settings, and its feed starts once it is created', async () => {
  const { db, start, now } = await createLiveBehindProxy()
  await deleteDb(db.name)
  await start()
  expect(now()).toEqual(defaults)
  await createAgain(db)
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 50 }))
})

test('settings outlive their database until it is created again without them', async () => {
  const clock = createManualClock()
  const { db, looks, start, now } = await createLiveBehindProxy(clock)
  await set(db, { max_event_delay: 50 })
  await start()
  await deleteDb(db.name)
  const before = looks()
  await eventually(async () => {
    await clock.advance(MINUTE_MS)
    expect(looks()).toBeGreaterThan(before + 2)
  })
  expect(now()).toEqual({ ...defaults, max_event_delay: 50 })
  await createAgain(db)
  await eventually(async () => {
    await clock.advance(MINUTE_MS)
    expect(now()).toEqual(defaults)
  })
})

test('a database created again is followed', async () => {
  needs('database identity')
  const { db, now } = await startLive()
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 50 }))
  await makeAgain(db)
  await eventually(() => expect(now()).toEqual(defaults))
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 60 }))
})

/** Settings that were read after the feed row and need no further read. */
async function startIdle() {
  const clock = createManualClock()
  const rig = await createLiveBehindProxy(clock)
  await set(rig.db, { max_event_delay: 50 })
  await rig.start()
  await eventually(() => expect(rig.looks()).toBeGreaterThan(1))
  const idle = () => eventually(() => expect(clock.sleeping).toBe(1))
  await idle()
  return { ...rig, clock, idle }
}

test('idle settings are read once a minute, with one open feed', async () => {
  const { proxy, clock, looks, idle } = await startIdle()
  for (let minute = 1; minute <= 5; minute++) {
    const before = looks()
    await clock.advance(MINUTE_MS)
    await eventually(() => expect(looks()).toBe(before + 1))
    await idle()
    expect(looks()).toBe(before + 1)
  }
  expect(proxy.requests.filter(isFeed)).toHaveLength(1)
})

test('changes of other documents cause no read', async () => {
  const { db, looks, now } = await startIdle()
  const before = looks()
  for (let i = 0; i < 20; i++) await db.put({ _id: `device-${i}` })
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 60 }))
  expect(looks()).toBe(before + 1)
})

test('a change that the feed misses is found within a minute', async () => {
  const clock = createManualClock()
  const { db, proxy, looks, start, now } = await createLiveBehindProxy(clock)
  proxy.plan((request) => (isFeed(request) ? silence : undefined))
  await start()
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(clock.sleeping).toBe(1))
  expect(now()).toEqual(defaults)
  await clock.advance(MINUTE_MS)
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 60 }))
  expect(looks()).toBe(2)
})

test.each([
  ['at most every 15 s', 503, 15_000],
  ['every 30 s if an operator must fix the cause', 403, 30_000],
])('a refused read is repeated %s, and earlier settings stay in force', async (_, status, pauseMs) => {
  const { proxy, clock, looks, idle, now } = await startIdle()
  proxy.plan((request) => (isLook(request) ? refuse(status) : undefined))
  await clock.advance(MINUTE_MS)
  for (let times = 0; times < 8; times++) {
    await idle()
    await clock.advance(15_000) // past the short first delays
  }
  await idle()
  const before = looks()
  await clock.advance(pauseMs)
  await idle()
  expect(looks() - before).toBeLessThanOrEqual(2)
  expect(looks()).toBeGreaterThan(before)
  expect(now()).toEqual({ ...defaults, max_event_delay: 50 })
  proxy.plan(() => undefined)
})

test('the settings are known, late, if each read takes longer than ten seconds', async () => {
  const { proxy, live, stop } = await createLiveBehindProxy()
  proxy.plan((request) => (isLook(request) ? late(11_000) : undefined))
  const ending = new AbortController()
  const running = live.run(ending.signal)
  await live.whenKnown(AbortSignal.timeout(PATIENCE_MS))
  ending.abort(new Error('enough'))
  await running
  await stop()
})

test.each<[string, (request: SeenRequest) => boolean]>([
  ['a read', isLook],
  ['the feed', isFeed],
  ['everything', () => true],
])('the settings stop at once, also while %s has no answer', async (_, hangs) => {
  const { proxy, live, stop } = await createLiveBehindProxy()
  proxy.plan((request) => (hangs(request) ? silence : undefined))
  const ending = new AbortController()
  const running = live.run(ending.signal)
  await eventually(() => expect(proxy.requests.some(hangs)).toBe(true))
  ending.abort(new Error('enough'))
  await running
  await stop()
})

test('the settings run once and cannot start after their end', async () => {
  const { live, start, stop, proxy } = await createLiveBehindProxy()
  await start()
  await expect(live.run(new AbortController().signal)).rejects.toThrow('started twice')
  await stop()
  const other = await createLiveBehindProxy()
  await other.live.run(AbortSignal.abort())
  expect(other.proxy.requests).toEqual([])
  expect(proxy.requests.length).toBeGreaterThan(0)
})
