/** One bare continuous feed for each of thousands of databases, as many as the server bears: what `fleet.ts` is compared with. */
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { splitLines } from '../sidecar/feed/lines.ts'
import { inParallel } from './in-parallel.ts'
import { delaysFigure } from './figures.ts'
import { usageIfOurs } from './usage.ts'
import type { Line } from './report.ts'

const HEARTBEAT_MS = 10_000 // as the sidecar's own

export interface FeedsOptions {
  readonly couch: Couch
  readonly names: readonly string[]
  /** Of the server, if it is one of ours. */
  readonly serverPid: number | undefined
  readonly idleSeconds: number
  /** Databases that are written to, and the pause between. */
  readonly writes: readonly string[]
  readonly pauseMs: number
}

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
