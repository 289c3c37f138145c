import { expect, test } from 'vitest'
import { deleteDb, makeAgain, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import {
  cut,
  cutAfterBytes,
  inject,
  inPieces,
  refuse,
  silence,
  type Fault,
  type SeenRequest,
} from '../support/faulty-proxy.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createLiveBehindProxy, defaults, isFeed, isLook, set, startLive } from './rig.ts'

const MINUTE_MS = 60_000 // with its jitter, as the rig has it

test.each<[string, Fault]>([
  ['refused', refuse(500)],
  ['cut before the answer', cut],
  ['cut in the middle of a row', cutAfterBytes(30)],
  ['garbled', inject('<html>502 Bad Gateway</html>\n')],
  ['cut into single bytes', inPieces(1)],
])('a feed that is %s loses no change', async (_, fault) => {
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

test('what is set while CouchDB is away holds when it is back', async () => {
  const { db, proxy, start, now } = await createLiveBehindProxy()
  await set(db, { max_event_delay: 50 })
  await start()
  await proxy.down()
  await set(db, { max_event_delay: 60 })
  expect(now()).toEqual({ ...defaults, max_event_delay: 50 })
  await proxy.up()
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 60 }))
})

test('a CouchDB that is away at the start is waited for, and nothing is taken for known', async () => {
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

test('of a database that is not there it is known that nothing is set; made, it is followed', async () => {
  const { db, start, now } = await createLiveBehindProxy()
  await deleteDb(db.name)
  await start()
  expect(now()).toEqual(defaults)
  await db.create()
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 50 }))
})

test('settings outlive their database, until it is made again without them', async () => {
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
  await db.create()
  await eventually(async () => {
    await clock.advance(MINUTE_MS)
    expect(now()).toEqual(defaults)
  })
})

test('the feed of a database that was made again is followed', async () => {
  needs('database identity')
  const { db, now } = await startLive()
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 50 }))
  await makeAgain(db)
  await eventually(() => expect(now()).toEqual(defaults))
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 60 }))
})

/** Settings that were looked at when the feed had its row, and have nothing more to do. */
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

test('idle, it looks once a minute, and keeps its one feed', async () => {
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

test('changes of other documents are none of its business', async () => {
  const { db, looks, now } = await startIdle()
  const before = looks()
  for (let i = 0; i < 20; i++) await db.put({ _id: `device-${i}` })
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 60 }))
  expect(looks()).toBe(before + 1)
})

test('what the feed does not tell is found within a minute', async () => {
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
  ['at most every quarter of a minute', 503, 15_000],
  ['every half a minute where a person has to mend it', 403, 30_000],
])('what it may not look at is asked for again %s, and what was set holds', async (_, status, pauseMs) => {
  const { proxy, clock, looks, idle, now } = await startIdle()
  proxy.plan((request) => (isLook(request) ? refuse(status) : undefined))
  await clock.advance(MINUTE_MS)
  for (let times = 0; times < 8; times++) {
    await idle()
    await clock.advance(15_000) // over the short waits of the beginning
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

test.each<[string, (request: SeenRequest) => boolean]>([
  ['a look', isLook],
  ['the feed', isFeed],
  ['everything', () => true],
])('it ends at once, also while %s has no answer', async (_, hangs) => {
  const { proxy, live, stop } = await createLiveBehindProxy()
  proxy.plan((request) => (hangs(request) ? silence : undefined))
  const ending = new AbortController()
  const running = live.run(ending.signal)
  await eventually(() => expect(proxy.requests.some(hangs)).toBe(true))
  ending.abort(new Error('enough'))
  await running
  await stop()
})

test('it is run once only, and not at all after its end', async () => {
  const { live, start, stop, proxy } = await createLiveBehindProxy()
  await start()
  await expect(live.run(new AbortController().signal)).rejects.toThrow('started twice')
  await stop()
  const other = await createLiveBehindProxy()
  await other.live.run(AbortSignal.abort())
  expect(other.proxy.requests).toEqual([])
  expect(proxy.requests.length).toBeGreaterThan(0)
})
