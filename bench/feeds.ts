/**
 * One plain continuous feed for each of thousands of databases, as many as the server can hold: the baseline of
 * `visited-databases.ts`.
 */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCouch, type Couch } from '../sidecar/couch/client.ts'
import { splitLines } from '../sidecar/feed/source.ts'
import { inParallel } from './in-parallel.ts'
import { delaysFigure } from './figures.ts'
import { usageIfOurs } from './usage.ts'
import type { Line } from './report.ts'
import { answerOf } from '../test/support/answers.ts'

const HEARTBEAT_MS = 10_000 // as in the sidecar
const POLL_MS = 25_000 // as in the client

export interface FeedsOptions {
  readonly couch: Couch
  readonly url: string
  readonly names: readonly string[]
  /** The process id of the server, if the benchmark started it. */
  readonly serverPid: number | undefined
  readonly idleSeconds: number
  /** The databases that receive writes, and the pause between the writes. */
  readonly writes: readonly string[]
  readonly pauseMs: number
}

/** Follows each database as a worker would. */
export async function measureBareFeeds(options: FeedsOptions): Promise<Line[]> {
  const { couch, names, serverPid, idleSeconds, writes, pauseMs } = options
  const [leaving, sent, delays] = [new AbortController(), new Map<string, number>(), [] as number[]]
  setMaxListeners(0, leaving.signal)
  const refused = new Map<string, number>()
  let open = 0
  const before = await usageIfOurs(serverPid)

  async function follow(name: string): Promise<void> {
    try {
      const query = { feed: 'continuous', since: 'now', heartbeat: HEARTBEAT_MS }
      const body = await couch.db(name).changes(query, leaving.signal)
      open += 1
      void read(name, body)
    } catch (thrown) {
      const said = thrown instanceof Error ? thrown.message.replace(name, '…').slice(0, 120) : String(thrown)
      refused.set(said, (refused.get(said) ?? 0) + 1)
    }
  }

  async function read(name: string, body: Awaited<ReturnType<ReturnType<Couch['db']>['changes']>>): Promise<void> {
    try {
      for await (const lines of splitLines(body)) {
        const began = sent.get(name)
        if (began === undefined || !lines.some((line) => line !== '')) continue
        delays.push(performance.now() - began)
        sent.delete(name)
      }
      open -= 1
    } catch {
      open -= 1
    }
  }

  await inParallel(names, follow)
  await sleep(5000)
  const opened = await usageIfOurs(serverPid)
  await sleep(idleSeconds * 1000)
  const idle = await usageIfOurs(serverPid)
  for (const name of writes) {
    sent.set(name, performance.now())
    await couch.db(name).put({ _id: 'feeds-steady' })
    await sleep(pauseMs)
  }
  await sleep(3000)
  const borne = open
  leaving.abort()
  await sleep(3000)
  const why = [...refused].map(([said, count]) => `; ${count} refused: ${said}`).join('')
  return [
    {
      what: `a bare continuous feed for each of ${names.length}, idle, for ${idleSeconds} s`,
      figure:
        `${borne} borne${why}; ${(((idle.cpuSeconds - opened.cpuSeconds) / idleSeconds) * 100).toFixed(1)} % of a core and ` +
        `${((opened.bytes - before.bytes) / names.length / 1024).toFixed(0)} KB each of the server’s`,
    },
    {
      what: `bare feeds: ${1000 / pauseMs} writes a second: until the row is there`,
      figure: delaysFigure(delays, writes.length),
    },
  ]
}

/** Follows each database as a device does: a long poll that restarts when it ends. */
export async function measureLongPolls(options: FeedsOptions): Promise<Line[]> {
  const { url, names, serverPid, idleSeconds } = options
  const couch = createCouch({ url, connections: names.length })
  const leaving = new AbortController()
  setMaxListeners(0, leaving.signal)
  let polls = 0
  async function poll(name: string): Promise<void> {
    let since = 'now'
    while (!leaving.signal.aborted) {
      const query = { feed: 'longpoll', timeout: POLL_MS, since }
      const polled = answerOf<{ last_seq: string }>(couch, {
        db: name,
        path: '_changes',
        query,
        signal: leaving.signal,
      })
      polls += 1
      since = await polled.then(
        ({ last_seq }) => last_seq,
        () => sleep(1000, since),
      )
    }
  }
  const polling = names.map(async (name, i) => {
    await sleep((i / names.length) * POLL_MS)
    await poll(name)
  })
  await sleep(2 * POLL_MS)
  const [began, before] = [polls, await usageIfOurs(serverPid)]
  await sleep(idleSeconds * 1000)
  const idle = await usageIfOurs(serverPid)
  const polled = polls - began
  leaving.abort()
  await Promise.all(polling)
  await couch.close()
  return [
    {
      what: `a long poll for each of ${names.length}, as devices do, idle, for ${idleSeconds} s`,
      figure: `${polled} requests; ${(((idle.cpuSeconds - before.cpuSeconds) / idleSeconds) * 100).toFixed(1)} % of a core of the server’s`,
    },
  ]
}
