/**
 * `GET /_db_updates` of the sidecar beside that of the server, in one run: the time from a write to its row, the number
 * of documents written for it, and the cost of idle readers.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { seqText } from '../sidecar/couch/documents.ts'
import { ask } from './ask.ts'
import { quantile } from './figures.ts'
import { startProduct } from './product.ts'
import type { Line } from './report.ts'
import { usageOf } from './usage.ts'

const DATABASES = 100
/** Fewer than the databases that the sidecar follows one by one. */
const FOLLOWED = 40
const READERS = 500
const PAUSE_MS = 40

interface Feed {
  readonly who: string
  /** The URL with credentials. */
  readonly url: string
  /** The process id of the server that serves it; undefined if the benchmark did not start it. */
  readonly pid: number | undefined
}

/** @param couchPid of the server, if it is one of ours */
export async function measureGlobalChanges(couch: Couch, url: string, couchPid: number | undefined): Promise<Line[]> {
  const run = `bench-global-${Date.now()}`
  const names = Array.from({ length: DATABASES }, (_, i) => `${run}-${i}`)
  for (const name of names) await couch.db(name).create()
  const made = await couch.db('_global_changes').create()
  const product = await startProduct(url, run, 0)
  try {
    const ours: Feed = { who: 'sidecar', url: product.url, pid: product.child.pid }
    const servers: Feed = { who: 'server', url, pid: couchPid }
    await untilServed(ours, names.at(-1)!)
    const both = [ours, servers]
    const lines = await delays(couch, both, names, 'over the server’s')
    for (const each of [1, 10]) lines.push(...(await bursts(couch, names, run, each)))
    for (const feed of both) lines.push(...(await readers(couch, feed, names)))
    await couch.request({ method: 'DELETE', db: '_global_changes' })
    await sleep(3000) // it switches to the databases' own feeds
    const few = names.slice(0, FOLLOWED)
    for (const name of few) await couch.db(name).put({ _id: 'one-of-those-that-changed-last' })
    await sleep(10_000) // a listing finds the changes of databases that were not followed
    lines.push(...(await delays(couch, [ours], few, 'over the databases’ own')))
    return lines
  } finally {
    await product.stop()
    if (!made) await couch.db('_global_changes').create()
    for (const name of [...names, `${run}-control`, `${run}-events`]) {
      await couch.request({ method: 'DELETE', db: name }).catch(() => undefined)
    }
  }
}

/** Calls back with the name of each database that gets a row, until it ends. Resolves when it is connected. */
async function listen({ url }: Feed, onRow: (database: string, at: number) => void): Promise<() => void> {
  const leaving = new AbortController()
  const query = 'feed=continuous&since=now&heartbeat=1000'
  const response = await ask(url, `_db_updates?${query}`, { signal: leaving.signal })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const read = async () => {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop()!
      for (const line of lines) if (line.startsWith('{"db_name":"')) onRow(line.split('"')[3]!, performance.now())
    }
  }
  read().catch(() => undefined)
  return () => leaving.abort()
}

async function untilServed(feed: Feed, name: string): Promise<void> {
  for (;;) {
    const text = await ask(feed.url, '_db_updates').then(
      (response) => response.text(),
      () => '',
    )
    if (text.includes(`"${name}"`)) return sleep(3000)
    await sleep(100)
  }
}

async function delays(couch: Couch, feeds: readonly Feed[], names: readonly string[], how: string): Promise<Line[]> {
  const written = new Map<string, number>()
  const seen = feeds.map(() => [] as number[])
  const leave = await Promise.all(
    feeds.map((feed, i) => {
      const done = new Map<string, number>()
      return listen(feed, (database, at) => {
        const began = written.get(database)
        if (began === undefined || done.get(database) === began) return
        done.set(database, began)
        seen[i]!.push(at - began)
      })
    }),
  )
  for (let i = 0; i < 300; i++) {
    const name = names[i % names.length]!
    written.set(name, performance.now())
    await couch.db(name).put({ _id: `${how}-${i}` })
    await sleep(PAUSE_MS)
  }
  await sleep(3000)
  for (const end of leave) end()
  return feeds.map(({ who }, i) => ({
    what: `write to row of _db_updates, ${who}${who === 'sidecar' ? ` ${how}` : ''}`,
    figure: `median ${quantile(seen[i]!, 0.5).toFixed(0)} ms, p99 ${quantile(seen[i]!, 0.99).toFixed(0)} ms (${seen[i]!.length} rows of 300 writes)`,
  }))
}

async function bursts(couch: Couch, names: readonly string[], run: string, each: number): Promise<Line[]> {
  const changesOf = async (name: string) => parseInt(seqText((await couch.db(name).info()).update_seq))
  const databases = { sidecar: `${run}-events`, server: '_global_changes' }
  const before = { sidecar: await changesOf(databases.sidecar), server: await changesOf(databases.server) }
  const count = 10 / each
  for (let burst = 0; burst < count; burst++) {
    for (let i = 0; i < each; i++) {
      await Promise.all(names.map((name) => couch.db(name).put({ _id: `burst-${each}-${burst}-${i}` })))
    }
    await sleep(2000)
  }
  await sleep(3000)
  const written = async (who: 'sidecar' | 'server') => (await changesOf(databases[who])) - before[who]
  const bursts = count === 1 ? 'one burst' : `${count} bursts`
  return [
    {
      what: `documents written for ${10 * names.length} updates, ${bursts} of ${each} to each of ${names.length} databases`,
      figure: `sidecar ${await written('sidecar')}, server ${await written('server')}`,
    },
  ]
}

async function readers(couch: Couch, feed: Feed, names: readonly string[]): Promise<Line[]> {
  if (feed.pid === undefined) return []
  let rows = 0
  const before = await usageOf(feed.pid)
  const count = () => void (rows += 1)
  // All at once: the server answers no feed before its first row or heartbeat.
  const leave = await Promise.all(Array.from({ length: READERS }, () => listen(feed, count)))
  await sleep(2000)
  const open = await usageOf(feed.pid)
  const began = performance.now()
  for (let i = 0; i < 50; i++) {
    await couch.db(names[i % names.length]!).put({ _id: `reader-${feed.who}-${i}` })
    await sleep(200)
  }
  const after = await usageOf(feed.pid)
  for (const end of leave) end()
  await sleep(1000)
  const seconds = (performance.now() - began) / 1000
  return [
    {
      what: `${READERS} open readers, ${feed.who}`,
      figure:
        `${((open.bytes - before.bytes) / READERS / 1024).toFixed(0)} KB each; ` +
        `${(((after.cpuSeconds - open.cpuSeconds) / seconds) * 100).toFixed(0)} % of a core with 5 writes a second ` +
        `(${(rows / READERS).toFixed(0)} rows each)`,
    },
  ]
}
