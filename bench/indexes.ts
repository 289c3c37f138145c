/**
 * The lag of indexes under steady writes: built by the server's own ken, by the sidecar with ken off, and by both. Also
 * the build time of new indexes over many documents.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { seqText } from '../sidecar/couch/documents.ts'
import { readViewIndex } from '../sidecar/indexes/view-index.ts'
import { answerOf } from '../test/support/answers.ts'
import { ask } from './ask.ts'
import { quantile } from './figures.ts'
import { startProduct, type Product } from './product.ts'
import type { Line } from './report.ts'
import { setConfig } from './server-config.ts'

const DATABASES = 50
const DDOCS = ['_design/one', '_design/two']
const WRITES_A_SECOND = 25
const SECONDS = 90
/** One of this many writes is watched until both indexes have it. */
const WATCHED = 5
const LARGE_DATABASES = 2
const LARGE_DOCS = Number(process.env.BENCH_INDEXED ?? 50_000)

const MODES = {
  'the server’s ken': { ken: true, sidecar: false },
  'the sidecar, ken off': { ken: false, sidecar: true },
  both: { ken: true, sidecar: true },
} as const

export async function measureIndexes(couch: Couch, url: string): Promise<Line[]> {
  const lines: Line[] = []
  const made = await couch.db('_global_changes').create()
  try {
    for (const [name, { ken, sidecar }] of Object.entries(MODES)) {
      await setKen(url, ken)
      const run = `bench-indexes-${randomBytes(4).toString('hex')}`
      const product = sidecar ? await startProduct(url, run, 0) : undefined
      try {
        lines.push(...(await steady(couch, name, run, product)))
        lines.push(await fromNothing(couch, name, run))
      } finally {
        await product?.stop()
        await deleteAll(couch, run)
      }
    }
  } finally {
    await setKen(url, true)
    if (made) await couch.request({ method: 'DELETE', db: '_global_changes' })
  }
  return lines
}

async function steady(couch: Couch, how: string, run: string, product: Product | undefined): Promise<Line[]> {
  const names = Array.from({ length: DATABASES }, (_, i) => `${run}-${i}`)
  for (const name of names) {
    await couch.db(name).create()
    for (const ddoc of DDOCS) await couch.db(name).put(designDoc(ddoc))
  }
  await sleep(5000)
  const before = product && (await requestsOf(product))
  const lags: number[] = []
  const watching: Promise<void>[] = []
  const count = SECONDS * WRITES_A_SECOND
  const began = performance.now()
  for (let i = 0; i < count; i++) {
    const name = names[Math.floor(Math.random() * names.length)]!
    await couch.db(name).put({ _id: `doc-${i}`, number: i })
    if (i % WATCHED === 0) watching.push(watch(couch, name, lags))
    await sleep(Math.max(0, began + (i + 1) * (1000 / WRITES_A_SECOND) - performance.now()))
  }
  await Promise.all(watching)
  const requests = product && (await requestsOf(product)) - before!
  const seconds = (share: number) => `${quantile(lags, share).toFixed(2)} s`
  return [
    {
      what: `lag of ${2 * DATABASES} indexes in ${DATABASES} databases, ${WRITES_A_SECOND} writes a second, ${how}`,
      figure: `median ${seconds(0.5)}, p99 ${seconds(0.99)}, worst ${seconds(1)}`,
    },
    ...(requests === undefined
      ? []
      : [{ what: `requests for 1000 updates, ${how}`, figure: ((requests / count) * 1000).toFixed(0) }]),
  ]
}

/**
 * The time from a write until each index has it. The pauses between the polls grow, so that polling does not become the
 * load.
 */
async function watch(couch: Couch, name: string, lags: number[]): Promise<void> {
  const began = performance.now()
  const { update_seq } = await couch.db(name).info()
  const seq = parseInt(seqText(update_seq))
  for (const ddoc of DDOCS) {
    while ((await readViewIndex(couch, name, ddoc)).seq < seq) {
      await sleep(20 + (performance.now() - began) / 20)
    }
    lags.push((performance.now() - began) / 1000)
  }
}

async function fromNothing(couch: Couch, how: string, run: string): Promise<Line> {
  const names = Array.from({ length: LARGE_DATABASES }, (_, i) => `${run}-large-${i}`)
  for (const name of names) {
    await couch.db(name).create()
    for (let from = 0; from < LARGE_DOCS; from += 1000) {
      await couch.db(name).bulk(Array.from({ length: 1000 }, (_, i) => `{"_id":"doc-${from + i}","number":${i}}`))
    }
  }
  await sleep(5000)
  const began = performance.now()
  for (const name of names) for (const ddoc of DDOCS) await couch.db(name).put(designDoc(ddoc))
  const untilFresh = async (name: string, ddoc: string) => {
    while ((await readViewIndex(couch, name, ddoc)).pending > 0) await sleep(200)
  }
  await Promise.all(names.flatMap((name) => DDOCS.map((ddoc) => untilFresh(name, ddoc))))
  return {
    what: `until ${LARGE_DATABASES} × ${DDOCS.length} new indexes over ${LARGE_DOCS} documents are there, ${how}`,
    figure: `${((performance.now() - began) / 1000).toFixed(1)} s`,
  }
}

const designDoc = (_id: string) => ({
  _id,
  views: { by_number: { map: `function (doc) { emit(doc.number, ${JSON.stringify(_id)}) }` } },
})

async function setKen(url: string, on: boolean): Promise<void> {
  await setConfig(url, 'ken/batch_channels', on ? '20' : '0')
  await setConfig(url, 'ken/incremental_channels', on ? '80' : '0')
}

async function requestsOf({ url }: Product): Promise<number> {
  const text = await (await ask(url, 'metrics')).text()
  return Number(/^couchdb_sidecar_indexes_requests_total (\d+)/m.exec(text)![1])
}

async function deleteAll(couch: Couch, run: string): Promise<void> {
  const all = await answerOf<string[]>(couch, { path: '_all_dbs' })
  for (const db of all.filter((name) => name.startsWith(run))) await couch.request({ method: 'DELETE', db })
}
