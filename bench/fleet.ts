/**
 * Thousands of databases: visited (by a glob) beside followed (by their names, a connection each), in one run. How long a
 * write waits for its handler, what it costs CouchDB, and what a database costs in which nothing happens.
 */
import { randomBytes } from 'node:crypto'
import { readdir, readlink } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { usageOf } from './global-changes.ts'
import { quantile } from './figures.ts'
import { startProduct, type Product } from './product.ts'
import type { Line } from './report.ts'

const DATABASES = Number(process.env.BENCH_DATABASES ?? 2000)
const WRITERS = 16
const IDLE_SECONDS = 30
const [STEADY_WRITES, STEADY_PAUSE_MS] = [300, 50]

export async function measureFleet(couch: Couch, url: string): Promise<Line[]> {
  const run = `bench-fleet-${randomBytes(4).toString('hex')}`
  const names = Array.from({ length: DATABASES }, (_, i) => `${run}-${i}`)
  const made = await couch.db('_global_changes').create()
  try {
    await inParallel(names, (name) => couch.db(name).create())
    const none = await measureNone(url, run)
    const first = await firstStart(url, run)
    return [
      { what: `the first start: design documents and their indexes in ${DATABASES} databases`, figure: `${first} s` },
      ...(await measure(couch, url, run, names, none, 'visited')),
      ...(await measure(couch, url, run, names, none, 'followed')),
    ]
  } finally {
    if (made) await couch.request({ method: 'DELETE', db: '_global_changes' })
    const all = await couch.request<string[]>({ path: '_all_dbs' })
    const ours = all.filter((name) => name.startsWith(run))
    await inParallel(ours, (db) => couch.request({ method: 'DELETE', db }))
  }
}

/** Bytes of a process that looks after none of them. */
async function measureNone(url: string, run: string): Promise<number> {
  const product = await startProduct(url, run, 0, `${run}-none-*`)
  await sleep(15_000)
  const { bytes } = await usageOf(product.child.pid!)
  await product.stop()
  return bytes
}

/** Seconds until all have what the sidecar needs there. */
async function firstStart(url: string, run: string): Promise<string> {
  const began = performance.now()
  const product = await startProduct(url, run, 0, `${run}-*`)
  await untilReady(product, DATABASES, 'visited')
  await product.stop()
  return ((performance.now() - began) / 1000).toFixed(0)
}

async function measure(
  ...[couch, url, run, names, none, how]: [Couch, string, string, readonly string[], number, 'visited' | 'followed']
): Promise<Line[]> {
  const began = performance.now()
  const product = await startProduct(url, run, 0, how === 'visited' ? `${run}-*` : names.join())
  try {
    await untilReady(product, names.length, how)
    const startSeconds = (performance.now() - began) / 1000
    await sleep(15_000)
    const pid = product.child.pid!
    const [before, usage] = [await statsOf(couch), await usageOf(pid)]
    await sleep(IDLE_SECONDS * 1000)
    const idle = difference(await statsOf(couch), before)
    const idleCpu = (await usageOf(pid)).cpuSeconds - usage.cpuSeconds
    const sockets = await socketsOf(pid)
    const each = await burst(couch, names, `${how}-burst`)
    const steady = await steadily(couch, names, `${how}-steady`)
    const ms = (delays: number[]) =>
      `median ${quantile(delays, 0.5).toFixed(0)} ms, p99 ${quantile(delays, 0.99).toFixed(0)} ms`
    const { length } = names
    return [
      {
        what: `${length} databases ${how}: until all are at rest after a start`,
        figure: `${startSeconds.toFixed(0)} s`,
      },
      {
        what: `${how}, idle, for ${IDLE_SECONDS} s`,
        figure:
          `${sockets} connections open; ${idle.requests} requests, ${idle.writes} documents written; ` +
          `${((idleCpu / IDLE_SECONDS) * 100).toFixed(1)} % of a core; ` +
          `${((usage.bytes - none) / length / 1024).toFixed(1)} KB for each database`,
      },
      { what: `${how}: a write in each of ${length}, at once: until its handler begins`, figure: ms(each.delays) },
      { what: `${how}: requests for each of these changes`, figure: each.requests.toFixed(1) },
      { what: `${how}: ${1000 / STEADY_PAUSE_MS} writes a second: until the handler begins`, figure: ms(steady) },
    ]
  } finally {
    await product.stop()
  }
}

async function burst(couch: Couch, names: readonly string[], id: string) {
  const before = await statsOf(couch)
  await inParallel(names, (name) => write(couch, name, id))
  const delays = await handled(couch, names, id)
  const { requests } = difference(await statsOf(couch), before)
  return { delays, requests: (requests - names.length - delays.length - asked) / names.length }
}

async function steadily(couch: Couch, names: readonly string[], id: string): Promise<number[]> {
  const drawn = Array.from({ length: STEADY_WRITES }, () => names[Math.floor(Math.random() * names.length)]!)
  const some = [...new Set(drawn)]
  for (const name of some) {
    await write(couch, name, id)
    await sleep(STEADY_PAUSE_MS)
  }
  return handled(couch, some, id)
}

const write = (couch: Couch, name: string, _id: string) =>
  couch.db(name).put({ _id, type: 'order', state: 'paid', written_at: Date.now() })

/** Requests of ours to see what became of them. */
let asked = 0

/** Milliseconds of each, when all are there. */
async function handled(couch: Couch, names: readonly string[], id: string): Promise<number[]> {
  const delays: number[] = []
  asked = 0
  await inParallel(names, async (name) => {
    for (;;) {
      const doc = await couch.db(name).get(id)
      if (doc.state === 'invoiced') return void delays.push(Number(doc.handled_at) - Number(doc.written_at))
      asked += 1
      await sleep(200)
    }
  })
  return delays
}

async function untilReady(product: Product, databases: number, how: 'visited' | 'followed'): Promise<void> {
  for (;;) {
    const text = await metricsOf(product).catch(() => '')
    const value = (name: string) => Number(new RegExp(`^couchdb_sidecar_${name} (\\d+)`, 'm').exec(text)?.[1])
    const following = [...text.matchAll(/^couchdb_sidecar_databases_following{[^}]*} (\d+)/gm)]
    const sum = following.reduce((all, [, count]) => all + Number(count), 0)
    const isAtRest = value('fleet_databases') >= databases && value('fleet_open') + value('fleet_waiting') === 0
    if (how === 'visited' ? isAtRest : sum >= databases) return
    await sleep(500)
  }
}

async function metricsOf({ url }: Product): Promise<string> {
  const { origin, username, password } = new URL(url)
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  return (await fetch(`${origin}/metrics`, { headers: { authorization } })).text()
}

interface Stats {
  readonly requests: number
  readonly writes: number
}

async function statsOf(couch: Couch): Promise<Stats> {
  const { httpd, database_writes } = await couch.request<{
    httpd: { requests: { value: number } }
    database_writes: { value: number }
  }>({ path: '_node/_local/_stats/couchdb' })
  return { requests: httpd.requests.value, writes: database_writes.value }
}

/** The question itself is one of the requests. */
const difference = (now: Stats, before: Stats): Stats => ({
  requests: now.requests - before.requests - 1,
  writes: now.writes - before.writes,
})

async function socketsOf(pid: number): Promise<number> {
  const fds = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  return links.filter((link) => link.startsWith('socket:')).length
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items]
  const worker = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: WRITERS }, worker))
}
