/**
 * Devices as the client runs them: its single replications and its live links, each with its own PouchDB on disk.
 * Reports their cost for CouchDB to its parent. `../devices.ts` forks it with the job as its argument.
 */
import { setMaxListeners } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db, Pouch } from '../../client/src/pouch.ts'
import { createLink } from '../../client/src/sync/link.ts'
import { openRemote, type Target } from '../../client/src/sync/remote.ts'
import { runSession } from '../../client/src/sync/session.ts'
import { createSemaphore } from '../../client/src/sync/semaphore.ts'
import { createCouch } from '../../sidecar/couch/client.ts'
import { delaysFigure } from '../figures.ts'
import { inParallel } from '../in-parallel.ts'
import type { Line } from '../report.ts'
import { difference, statsOf, usageOf } from '../usage.ts'
import type { DevicesJob } from './job.ts'

const IDLE_SECONDS = 30
const PAUSE_MS = 50
const { url, serverPid, names } = JSON.parse(process.argv[2]!) as DevicesJob
const { origin, username: user, password } = new URL(url)
const couch = createCouch({ url })
const folder = await mkdtemp(join(tmpdir(), 'bench-devices-'))
const Whole = createRequire(import.meta.url)('pouchdb') as { defaults(options: object): Pouch }
const PouchDB = Whole.defaults({ prefix: `${folder}/` })
/** The two devices of each channel. */
const channels = names.map((name) => {
  const target: Target = { url: `${origin}/${name}`, user, password }
  return { name, target, first: new PouchDB(`${name}-first`), second: new PouchDB(`${name}-second`) }
})
type Channel = (typeof channels)[number]

const ms = (seconds: number) => `${(seconds * 1000).toFixed(1)} ms of processor of the server`

/** Replicates both directions once, until no change is left. */
async function round(local: Db, { target }: Channel): Promise<void> {
  const remote = openRemote(PouchDB, target)
  const quietly = { onCopied: () => undefined, onEven: () => undefined, onRefused: () => undefined }
  const { kind } = await runSession({ local, remote, live: false, signal: new AbortController().signal, ...quietly })
  if (kind !== 'done') throw new Error(`a round ${kind}`)
}

async function costOf(what: string, work: (channel: Channel) => Promise<unknown>): Promise<Line> {
  const [before, usage] = [await statsOf(couch), await usageOf(serverPid)]
  await inParallel(channels, work, 4)
  const { requests } = difference(await statsOf(couch), before)
  const cpu = (await usageOf(serverPid)).cpuSeconds - usage.cpuSeconds
  const { length } = channels
  return { what, figure: `${(requests / length).toFixed(1)} requests; ${ms(cpu / length)}` }
}

/** All devices follow their channels live. Then the first device of each channel writes a document. */
async function measureLive(): Promise<Line[]> {
  const leaving = new AbortController()
  setMaxListeners(0, leaving.signal)
  const semaphore = createSemaphore(1)
  const quietly = { onChange: () => undefined, onNews: () => undefined, onRefused: () => undefined }
  const links = channels.flatMap(({ first, second, target }) =>
    [first, second].map((local) => createLink({ PouchDB, local, target, semaphore, roundMs: 30_000, ...quietly })),
  )
  for (const link of links) link.follow(true)
  const running = links.map((link) => link.run(leaving.signal))
  while (!links.every(({ status }) => status.state === 'live')) await sleep(100)
  const sent = new Map<Channel, number>()
  const delays: number[] = []
  for (const channel of channels) {
    channel.second.changes({ live: true, since: 'now' }).on('change', () => {
      delays.push(performance.now() - sent.get(channel)!)
    })
  }
  await sleep(5000)
  const usage = await usageOf(serverPid)
  await sleep(IDLE_SECONDS * 1000)
  const [rested, before, began] = [await usageOf(serverPid), await statsOf(couch), performance.now()]
  for (const channel of channels) {
    sent.set(channel, performance.now())
    await channel.first.put({ _id: 'live' })
    await sleep(PAUSE_MS)
  }
  while (delays.length < channels.length && performance.now() - began < 60_000) await sleep(100)
  await sleep(3000) // they save their checkpoints
  const idle = (rested.cpuSeconds - usage.cpuSeconds) / IDLE_SECONDS
  const { requests } = difference(await statsOf(couch), before)
  const cpu = (await usageOf(serverPid)).cpuSeconds - rested.cpuSeconds - (idle * (performance.now() - began)) / 1000
  leaving.abort()
  await Promise.all(running)
  const { length } = channels
  return [
    {
      what: `${links.length} devices that follow a channel live, idle`,
      figure: `${ms(idle / links.length)} each second`,
    },
    {
      what: `live: ${1000 / PAUSE_MS} documents a second, each from one device to another`,
      figure: `${delaysFigure(delays, length)}; ${(requests / length).toFixed(1)} requests; ${ms(cpu / length)}, without what the feeds cost anyway`,
    },
  ]
}

const brings = async (channel: Channel) => {
  await channel.first.put({ _id: 'round' })
  await round(channel.first, channel)
}
const fetches = (channel: Channel) => round(channel.second, channel)
await inParallel(channels, (channel) => round(channel.first, channel).then(() => fetches(channel)), 4)
const lines = [
  await costOf('a document written by itself, with the guard', ({ name }) => couch.db(name).put({ _id: 'written' })),
  await costOf('a round of a device that fetches a document', fetches),
  await costOf('a round of a device that finds nothing', fetches),
]
await inParallel(channels, (channel) => round(channel.first, channel), 4)
lines.push(await costOf('a round of a device that brings a document', brings), ...(await measureLive()))
for (const { first, second } of channels) await Promise.all([first.close(), second.close()])
await couch.close()
await rm(folder, { recursive: true })
process.send!(lines)
process.disconnect()
