/**
 * Thousands of databases in one run: visited (by a glob) beside followed (by name, one connection each). Measures the
 * wait of a write for its handler, the cost for CouchDB, and the cost of an idle database.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { CouchError } from '../sidecar/couch/couch-errors.ts'
import { answerOf } from '../test/support/answers.ts'
import { ask } from './ask.ts'
import { measureBareFeeds, measureLongPolls } from './feeds.ts'
import { delaysFigure } from './figures.ts'
import { inParallel } from './in-parallel.ts'
import { startProduct, type Product } from './product.ts'
import type { Line } from './report.ts'
import { setConfig } from './server-config.ts'
import { difference, socketsOf, statsOf, usageIfOurs, usageOf } from './usage.ts'

const DATABASES = Number(process.env.BENCH_DATABASES ?? 2000)
/** Every database is listed once in each minute. */
const IDLE_SECONDS = 60
const PATIENCE_MS = 300_000
/** The pause after a start and after a write to all databases: the work that they cause is done then. */
const REST_MS = 60_000
const [STEADY_WRITES, STEADY_PAUSE_MS] = [300, 50]
/** From the start of the last handler until its outcome is saved. */
const SAVED_MS = 5000

interface Run {
  readonly couch: Couch
  readonly url: string
  /** The process id of the server, if the benchmark started it. */
  readonly serverPid: number | undefined
  /** The common prefix of all databases of this run. */
  readonly run: string
  readonly names: readonly string[]
}

export async function measureVisited(couch: Couch, url: string, serverPid: number | undefined): Promise<Line[]> {
  const run = `bench-visited-${randomBytes(4).toString('hex')}`
  const names = Array.from({ length: DATABASES }, (_, i) => `${run}-${i}`)
  const all: Run = { couch, url, serverPid, run, names }
  const made = await couch.db('_global_changes').create()
  try {
    await inParallel(names, (name) => couch.db(name).create())
    const none = await measureNone(all)
    const feeds = { ...all, idleSeconds: IDLE_SECONDS, writes: some(names), pauseMs: STEADY_PAUSE_MS }
    const parts = [
      async () => [await firstStart(all), await disk(all), await writesAlone(all)],
      () => measureBareFeeds(feeds),
      () => measureLongPolls(feeds),
      () => measure(all, none, 'visited'),
      () => measure(all, none, 'followed'),
      () => withFilesOpen(all, () => measureLongPolls(feeds)),
      () => withFilesOpen(all, () => measure(all, none, 'visited', 'visited again')),
      () => withoutIndexes(all, none),
    ]
    const lines: Line[] = []
    for (const part of parts) {
      const measured = await part()
      for (const { what, figure } of measured) console.log(`${what}: ${figure}`)
      lines.push(...measured)
    }
    return lines
  } finally {
    if (made) await couch.request({ method: 'DELETE', db: '_global_changes' })
    const there = await answerOf<string[]>(couch, { path: '_all_dbs' })
    const ours = there.filter((name) => name.startsWith(run))
    await inParallel(ours, (db) => couch.request({ method: 'DELETE', db }))
  }
}

/** Bytes in use in a process without databases. */
async function measureNone({ url, run }: Run): Promise<number> {
  const product = await startProduct(url, run, 0, `${run}-none-*`)
  await sleep(REST_MS)
  const bytes = await product.live()
  await product.stop()
  return bytes
}

/** Waits until every database has the sidecar's documents. */
async function firstStart({ url, run }: Run): Promise<Line> {
  const began = performance.now()
  const product = await startProduct(url, run, 0, `${run}-*`)
  await untilReady(product, DATABASES, 'visited')
  await product.stop()
  const seconds = (performance.now() - began) / 1000
  return {
    what: `the first start: design documents and their indexes in ${DATABASES} databases`,
    figure: `${seconds.toFixed(0)} s`,
  }
}

/** The cost of a database with no document except the design document. */
async function disk({ couch, names }: Run): Promise<Line> {
  interface Sizes {
    readonly sizes: { readonly file: number }
  }
  const db = names[0]!
  const info = await answerOf<Sizes>(couch, { db })
  const { view_index } = await answerOf<{ view_index: Sizes }>(couch, { db, path: '_design/docstate/_info' })
  const kb = ({ sizes }: Sizes) => (sizes.file / 1024).toFixed(0)
  return { what: 'disk of an empty one, and of its index', figure: `${kb(info)} KB, ${kb(view_index)} KB` }
}

/** The best rate of the server alone, with the guard that every database has now. */
async function writesAlone({ couch, serverPid, names }: Run): Promise<Line> {
  const [began, before] = [performance.now(), await usageIfOurs(serverPid)]
  await inParallel(names, (name) => write(couch, name, 'alone'))
  const seconds = (performance.now() - began) / 1000
  const cpu = (await usageIfOurs(serverPid)).cpuSeconds - before.cpuSeconds
  return {
    what: `a write in each of ${names.length}, without a sidecar`,
    figure: `${seconds.toFixed(1)} s; ${((cpu / names.length) * 1000).toFixed(1)} ms of processor of the server for each`,
  }
}

/** The number of databases whose files CouchDB keeps open: each database has two shards, and the server has its own. */
async function withFilesOpen({ url, names }: Run, work: () => Promise<Line[]>): Promise<Line[]> {
  const enough = 2 * names.length + 500
  const before = await setConfig(url, 'couchdb/max_dbs_open', `${enough}`)
  try {
    const lines = await work()
    return lines.map((line) => ({ ...line, what: `max_dbs_open ${enough}: ${line.what}` }))
  } finally {
    await setConfig(url, 'couchdb/max_dbs_open', before)
  }
}

/** The same without a fresh index: shows the share of the indexes in the cost. */
async function withoutIndexes(all: Run, none: number): Promise<Line[]> {
  await all.couch.db(`${all.run}-control`).put({ _id: 'config:ken', ignore: [`${all.run}-*`] })
  const lines = await measure(all, none, 'visited', 'visited, indexes left alone')
  return lines.slice(2)
}

async function measure(all: Run, none: number, how: 'visited' | 'followed', called: string = how): Promise<Line[]> {
  const { url, run, names } = all
  const { length } = names
  const began = performance.now()
  const product = await startProduct(url, run, 0, how === 'visited' ? `${run}-*` : names.join())
  try {
    await untilReady(product, length, how)
    const startSeconds = (performance.now() - began) / 1000
    await sleep(REST_MS)
    const live = await product.live()
    const before = await costsOf(all, product)
    await sleep(IDLE_SECONDS * 1000)
    const atRest = await costsOf(all, product)
    const idle = between(before, atRest)
    const sockets = await socketsOf(product.child.pid!)
    const burst = await measureBurst(all, product, `${called}-burst`, atRest)
    const followed = (what: keyof Costs) => burst.settled[what] - (idle[what] / idle.seconds) * burst.settled.seconds
    const ms = (seconds: number) => `${((seconds / length) * 1000).toFixed(1)} ms`
    const cores = (seconds: number) => (seconds / idle.seconds).toFixed(3)
    const steady = await steadily(all, product, `${called}-steady`)
    return [
      {
        what: `${length} databases ${called}: until all are at rest after a start`,
        figure: `${startSeconds.toFixed(0)} s`,
      },
      {
        what: `${called}, idle, for ${IDLE_SECONDS} s`,
        figure:
          `${sockets} connections open; ${idle.requests} requests, ${idle.writes} documents written; ` +
          `${cores(idle.cpuSeconds)} of a core, ${cores(idle.serverCpuSeconds)} of the server’s; ` +
          `${((live - none) / length / 1024).toFixed(1)} KB live for each database`,
      },
      {
        what: `${called}: a write in each of ${length}, at once: until its handler begins`,
        figure: delaysFigure(burst.delays, length),
      },
      {
        what: `${called}: all of these, until the last handler begins`,
        figure:
          `${burst.begun.seconds.toFixed(1)} s; for each ${ms(burst.begun.cpuSeconds)} of processor and ` +
          `${ms(burst.begun.serverCpuSeconds)} of the server’s, with the write` +
          (burst.failures > 0 ? `; ${burst.failures} requests were answered with a failure` : ''),
      },
      {
        what: `${called}: all of these, with what follows in ${REST_MS / 1000} s (outcomes, checkpoints, events, indexes)`,
        figure:
          `for each ${(followed('requests') / length - 1).toFixed(1)} requests, ${ms(followed('cpuSeconds'))} of ` +
          `processor and ${ms(followed('serverCpuSeconds'))} of the server’s, without the cost of idle databases`,
      },
      {
        what: `${called}: ${1000 / STEADY_PAUSE_MS} writes a second: until the handler begins`,
        figure: delaysFigure(steady.delays, steady.count),
      },
    ]
  } finally {
    await product.stop()
  }
}

/** Sums since the start of each process. */
interface Costs {
  /** Time of the measurement. */
  readonly seconds: number
  readonly cpuSeconds: number
  readonly serverCpuSeconds: number
  readonly requests: number
  readonly writes: number
}

async function costsOf({ couch, serverPid }: Run, { child }: Product): Promise<Costs> {
  return {
    seconds: performance.now() / 1000,
    cpuSeconds: (await usageOf(child.pid!)).cpuSeconds,
    serverCpuSeconds: (await usageIfOurs(serverPid)).cpuSeconds,
    ...(await statsOf(couch)),
  }
}

const between = (before: Costs, after: Costs): Costs => ({
  ...difference(after, before),
  seconds: after.seconds - before.seconds,
  cpuSeconds: after.cpuSeconds - before.cpuSeconds,
  serverCpuSeconds: after.serverCpuSeconds - before.serverCpuSeconds,
})

/** Writes a document in each database at once. No request of the benchmark waits for the handlers: it would count. */
async function measureBurst(all: Run, product: Product, id: string, before: Costs) {
  failed = 0
  const count = product.begun() + all.names.length
  await inParallel(all.names, (name) => write(all.couch, name, id))
  await untilBegun(product, count)
  const [begun, failures] = [between(before, await costsOf(all, product)), failed]
  await sleep(REST_MS)
  const settled = between(before, await costsOf(all, product))
  return { begun, settled, failures, delays: await delaysOf(all.couch, all.names, id) }
}

/** The delays of databases that are written one after the other, once each. */
const some = (names: readonly string[]): string[] => [
  ...new Set(Array.from({ length: STEADY_WRITES }, () => names[Math.floor(Math.random() * names.length)]!)),
]

async function steadily({ couch, names: all }: Run, product: Product, id: string) {
  const names = some(all)
  const before = product.begun()
  for (const name of names) {
    await write(couch, name, id)
    await sleep(STEADY_PAUSE_MS)
  }
  await untilBegun(product, before + names.length)
  await sleep(SAVED_MS)
  return { delays: await delaysOf(couch, names, id), count: names.length }
}

/** Waits until so many handlers have begun, or the time is over. It sends no request, which would be measured too. */
async function untilBegun(product: Product, count: number): Promise<void> {
  const until = Date.now() + PATIENCE_MS
  while (product.begun() < count && Date.now() < until) await sleep(50)
}

const write = (couch: Couch, name: string, _id: string) =>
  withRetries(() => couch.db(name).put({ _id, type: 'order', state: 'paid', written_at: Date.now() }))

/** Answers with a failure of the server itself. */
let failed = 0

/** An overloaded server fails at times. The number of failures is one of the figures. */
async function withRetries<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (thrown) {
      if (!(thrown instanceof CouchError) || thrown.retry === 'never') throw thrown
      failed += 1
      await sleep(1000)
    }
  }
}

/** The delay of each handled document, milliseconds. */
async function delaysOf(couch: Couch, names: readonly string[], id: string): Promise<number[]> {
  const delays: number[] = []
  await inParallel(names, async (name) => {
    const doc = await withRetries(() => couch.db(name).get(id))
    if (doc.state === 'invoiced') delays.push(Number(doc.handled_at) - Number(doc.written_at))
  })
  return delays
}

/** Waits until every database is tracked and no work is left. */
export async function untilReady(product: Product, databases: number, how: 'visited' | 'followed'): Promise<void> {
  for (;;) {
    const polls = ask(product.url, 'metrics').then((answer) => answer.text())
    const text = await polls.catch(() => '')
    const value = (name: string) => Number(new RegExp(`^couchdb_sidecar_${name} (\\d+)`, 'm').exec(text)?.[1])
    const following = [...text.matchAll(/^couchdb_sidecar_databases_following{[^}]*} (\d+)/gm)]
    const sum = following.reduce((all, [, count]) => all + Number(count), 0)
    const isAtRest = value('visited_databases') >= databases && value('visits_open') + value('visits_waiting') === 0
    if (how === 'visited' ? isAtRest : sum >= databases) return
    await sleep(500)
  }
}
