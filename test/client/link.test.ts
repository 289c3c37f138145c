import { expect, onTestFinished, test, vi } from 'vitest'
import { createLink } from '../../client/src/sync/link.ts'
import { createLinks } from '../../client/src/sync/links.ts'
import { createSemaphore } from '../../client/src/sync/semaphore.ts'
import { eventually } from '../support/eventually.ts'
import { pass, silence, type Fault, type SeenRequest } from '../support/faulty-proxy.ts'
import { startLink, startReplica } from './replica.ts'

async function start(isLive: boolean, fault: (request: SeenRequest) => Fault | undefined = () => undefined) {
  const replica = await startReplica()
  replica.proxy.plan(fault)
  const link = startLink(replica, isLive, 60_000)
  await eventually(() => expect(link.status.state).toBe(isLive ? 'live' : 'resting'))
  return { ...replica, link }
}

/** Shorter than the time after which the client itself restarts a silent feed or round (`sync/remote.ts`). */
const SOON = { within: 20_000 }

const isFeed = ({ query }: SeenRequest) => query.get('feed') === 'longpoll'

/** Moves the clock, as after a sleep in which no timer ran. */
function sleep(ms: number): void {
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now + ms)
  onTestFinished(() => void vi.restoreAllMocks())
}

test('a feed whose connection died during a sleep restarts when the app becomes visible', async () => {
  const { there, here, proxy, link } = await start(true, (request) => (isFeed(request) ? silence : undefined))
  await eventually(() => expect(proxy.requests.some(isFeed)).toBe(true))
  await there.put({ _id: 'written while it slept' })
  link.wake({ hard: false }) // too early to restart
  expect(link.status.state).toBe('live')
  proxy.plan(() => undefined)
  sleep(30_000)
  link.wake({ hard: false })
  await eventually(async () => expect(await here.get('written while it slept')).toBeDefined(), SOON)
})

test('a dead feed restarts although local writes still reach the server', async () => {
  const { there, here, proxy, link } = await start(true, (request) => (isFeed(request) ? silence : undefined))
  await eventually(() => expect(proxy.requests.some(isFeed)).toBe(true))
  await there.put({ _id: 'written while it slept' })
  sleep(30_000)
  await here.put({ _id: 'from here' })
  await eventually(async () => expect(await there.get('from here')).toBeDefined())
  proxy.plan(() => undefined)
  link.wake({ hard: false })
  await eventually(async () => expect(await here.get('written while it slept')).toBeDefined(), SOON)
})

test('a stuck sync round restarts when the app becomes visible', async () => {
  const { there, here, proxy, link } = await start(false)
  proxy.plan(() => silence)
  const before = proxy.requests.length
  await here.put({ _id: 'from here' }) // starts a round
  await eventually(() => expect(proxy.requests.length).toBeGreaterThan(before))
  proxy.plan(() => undefined)
  sleep(30_000)
  link.wake({ hard: false })
  await eventually(async () => expect(await there.get('from here')).toBeDefined(), SOON)
  await eventually(() => expect(link.status.state).toBe('resting'))
})

test('a PouchDB without an HTTP adapter reports a failure, and recovers later', async () => {
  const { there, here, target, PouchDB } = await startReplica()
  let isAble = false
  const Lacking = function (name: string, options?: object) {
    if (!isAble) throw new Error('Invalid Adapter: undefined')
    return new PouchDB(name, options)
  } as unknown as typeof PouchDB
  Lacking.fetch = (url, init) => PouchDB.fetch(url, init)
  const link = createLink({
    ...{ PouchDB: Lacking, local: here, target, semaphore: createSemaphore(1), roundMs: 60_000 },
    ...{ onChange() {}, onNews() {}, onRefused() {} },
  })
  const stopping = new AbortController()
  const running = link.run(stopping.signal)
  await eventually(() => expect(link.status).toMatchObject({ state: 'failing', failure: { code: 'failed' } }))
  expect(link.status.failure?.reason).toContain('Invalid Adapter')
  isAble = true
  await there.put({ _id: 'from there' })
  await eventually(async () => expect(await here.get('from there')).toBeDefined())
  stopping.abort()
  await running
})

test('a link that is stopped before the previous link has ended does not follow the database', async () => {
  const { here, target, proxy, PouchDB } = await startReplica()
  const changes = vi.spyOn(here, 'changes')
  // The other feeds belong to sync sessions.
  const feeds = () => changes.mock.calls.filter(([options]) => options?.since === 'now')
  const links = createLinks({
    live: 1,
    open: (wanted, onNews) =>
      createLink({
        ...{ PouchDB, local: here, target: wanted.target, semaphore: createSemaphore(1), roundMs: 60_000 },
        ...{ onChange() {}, onNews, onRefused() {} },
      }),
  })
  const wanted = [{ id: 'photos', local: 'here', target }]
  links.set(wanted)
  await eventually(() => expect(proxy.requests.some(isFeed)).toBe(true))
  for (const all of [[], wanted, []]) links.set(all)
  await links.stop()
  expect(feeds()).toHaveLength(1)
})

/** Two links share a semaphore with one permit. The first link has much to read, and waits for `go`. */
async function startTwo() {
  const semaphore = createSemaphore(1)
  const start = async () => {
    const replica = await startReplica()
    const { here, target, PouchDB } = replica
    const link = createLink({
      ...{ PouchDB, local: here, target, semaphore, roundMs: 60_000, onChange() {}, onNews() {}, onRefused() {} },
    })
    const stopping = new AbortController()
    let running = Promise.resolve()
    onTestFinished(() => {
      stopping.abort()
      return running
    })
    return { ...replica, link, run: () => void (running = link.run(stopping.signal)) }
  }
  const [large, small] = [await start(), await start()]
  for (let number = 0; number < 250; number++) await large.there.put({ _id: `note ${number}` })
  let go = () => {}
  const gone = new Promise<void>((resolve) => (go = resolve))
  const isRead = ({ path }: SeenRequest) => path.endsWith('/_bulk_get')
  large.proxy.plan((request) => (isRead(request) ? (exchange) => gone.then(() => pass(exchange)) : undefined))
  const isReading = () => expect(large.proxy.requests.some(isRead)).toBe(true)
  return { large, small, go, isReading }
}

test('a link that switches to live sync releases its permit of the semaphore', async () => {
  const { large, small, isReading } = await startTwo()
  large.run()
  await eventually(isReading)
  small.run()
  large.link.follow(true)
  await eventually(() => expect(small.link.status.state).toBe('resting'))
})

test('a link that stops live sync with much to copy waits for a permit, and finishes', async () => {
  const { large, small, go, isReading } = await startTwo()
  large.link.follow(true)
  large.run()
  await eventually(isReading)
  small.proxy.plan(() => silence)
  small.run()
  await eventually(() => expect(small.proxy.requests.length).toBeGreaterThan(0))
  large.link.follow(false)
  go()
  await eventually(() => expect(large.link.status).toMatchObject({ state: 'waiting', read: 100 }))
  small.proxy.plan(() => undefined)
  small.link.wake({ hard: true })
  await eventually(() => expect(large.link.status).toMatchObject({ state: 'resting', read: 250 }))
})
