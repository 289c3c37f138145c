import { expect, onTestFinished, test, vi } from 'vitest'
import { createLink } from '../../client/src/sync/link.ts'
import { createSlots } from '../../client/src/sync/slots.ts'
import { eventually } from '../support/eventually.ts'
import { silence, type Fault, type SeenRequest } from '../support/faulty-proxy.ts'
import { startReplica } from './replica.ts'

async function startLink(isLive: boolean, fault: (request: SeenRequest) => Fault | undefined = () => undefined) {
  const replica = await startReplica()
  const { here, target, proxy, PouchDB } = replica
  proxy.plan(fault)
  const link = createLink({
    ...{ PouchDB, local: here, target, slots: createSlots(1), roundMs: 60_000 },
    ...{ onChange() {}, onNews() {}, onRefused() {} },
  })
  link.follow(isLive)
  const stopping = new AbortController()
  const running = link.run(stopping.signal)
  onTestFinished(async () => {
    stopping.abort()
    await running
  })
  await eventually(() => expect(link.status.state).toBe(isLive ? 'live' : 'resting'))
  return { ...replica, link }
}

const isFeed = ({ query }: SeenRequest) => query.get('feed') === 'longpoll'

/** As after so long asleep: nothing has run meanwhile, only the clock. */
function sleep(ms: number): void {
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now + ms)
  onTestFinished(() => void vi.restoreAllMocks())
}

test('a feed whose connection died in a sleep is begun anew when somebody looks', async () => {
  const { there, here, proxy, link } = await startLink(true, (request) => (isFeed(request) ? silence : undefined))
  await eventually(() => expect(proxy.requests.some(isFeed)).toBe(true))
  await there.put({ _id: 'written while it slept' })
  link.wake({ hard: false }) // too soon to know
  expect(link.status.state).toBe('live')
  proxy.plan(() => undefined)
  sleep(30_000)
  link.wake({ hard: false })
  await eventually(async () => expect(await here.get('written while it slept')).toBeDefined(), { within: 8000 })
})

test('a round that hangs is begun anew when somebody looks', async () => {
  const { there, here, proxy, link } = await startLink(false)
  proxy.plan(() => silence)
  const before = proxy.requests.length
  await here.put({ _id: 'from here' }) // begins a round
  await eventually(() => expect(proxy.requests.length).toBeGreaterThan(before))
  proxy.plan(() => undefined)
  sleep(30_000)
  link.wake({ hard: false })
  await eventually(async () => expect(await there.get('from here')).toBeDefined(), { within: 8000 })
  await eventually(() => expect(link.status.state).toBe('resting'))
})
