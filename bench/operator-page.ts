/**
 * The operator page over many documents and databases: the time until it is usable in a browser, and its cost for
 * CouchDB with one open page and with twenty.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import type { Couch } from '../sidecar/couch/client.ts'
import { answerOf } from '../test/support/answers.ts'
import { findChromium, sharedBrowser } from '../test/support/browser.ts'
import { delaysFigure, quantile } from './figures.ts'
import { inParallel } from './in-parallel.ts'
import { startProduct } from './product.ts'
import type { Line } from './report.ts'
import { difference, statsOf, usageIfOurs } from './usage.ts'
import { untilReady } from './visited-databases.ts'

const DOCS = Number(process.env.BENCH_PAGE_DOCS ?? 1_000_000)
const DATABASES = Number(process.env.BENCH_DATABASES ?? 2000)
/** The share of documents in `error`. */
const FAILED = 1 / 100
const LOADS = 20
const [OPEN_SECONDS, REFRESH_MS] = [60, 5000]

export async function measureOperatorPage(couch: Couch, url: string, serverPid: number | undefined): Promise<Line[]> {
  if (findChromium() === undefined)
    return [{ what: 'the operator’s page', figure: 'not measured: there is no Chromium' }]
  const run = `bench-page-${randomBytes(4).toString('hex')}`
  const names = [`${run}-orders`, ...Array.from({ length: DATABASES - 1 }, (_, i) => `${run}-user-${i}`)]
  try {
    await inParallel(names, (name) => couch.db(name).create())
    await fill(couch, names[0]!)
    const product = await startProduct(url, run, 0, `${run}-*`)
    const browser = await sharedBrowser()
    try {
      await untilReady(product, DATABASES, 'visited')
      const loads = await measureLoads(browser, product.url, names[0]!)
      return [...loads, ...(await measureOpenPages(couch, product.url, serverPid))]
    } finally {
      await browser.close()
      await product.stop()
    }
  } finally {
    const there = await answerOf<string[]>(couch, { path: '_all_dbs' })
    await inParallel(
      there.filter((name) => name.startsWith(run)),
      (db) => couch.request({ method: 'DELETE', db }),
    )
  }
}

/** Written before its design document exists, whose guard would run for each. */
async function fill(couch: Couch, name: string): Promise<void> {
  const at = '2026-01-01T00:00:00.000Z'
  const failed = { state: 'error', error: { code: 'smtp_535', reason: 'no such user', at } }
  const order = (n: number) => ({
    ...{
      _id: `order-${String(n).padStart(7, '0')}`,
      type: 'order',
      owner: `owner-${n}@example.com`,
      state: 'invoiced',
    },
    ...(n % (1 / FAILED) === 0 && { ...failed, docstate: { state: 'error', failed_in: 'paid' } }),
  })
  const batches = Array.from({ length: Math.ceil(DOCS / 1000) }, (_, i) => i * 1000)
  await inParallel(batches, async (from) => {
    const docs = Array.from({ length: Math.min(1000, DOCS - from) }, (_, i) => JSON.stringify(order(from + i)))
    await couch.db(name).bulk(docs)
  })
}

/** The first request counts everything. Later ones count only what has changed. */
async function measureLoads(browser: Browser, address: string, database: string): Promise<Line[]> {
  const { origin, username, password } = new URL(address)
  const page = await (await browser.newContext()).newPage()
  await page.goto(`${origin}/`)
  await page.getByLabel('Name').fill(decodeURIComponent(username))
  await page.getByLabel('Password').fill(decodeURIComponent(password))
  const load = async (path: string) => {
    const began = performance.now()
    await page.goto(origin + path, { waitUntil: 'load' })
    return performance.now() - began
  }
  const began = performance.now()
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForLoadState('load')
  const first = performance.now() - began
  while (!/^In [\d,]+ databases/m.test(await page.locator('main').innerText())) await load('/')
  const whole = performance.now() - began
  const paths = [
    ['the overview', '/'],
    ['the list of what failed', `/documents?db=${database}&status=failed`],
    ['a page of a million', `/documents?db=${database}&type=order&state=invoiced&status=ready`],
    ['a document', `/document?db=${database}&id=order-0000100`],
    ['the machines', '/machines'],
  ] as const
  const lines: Line[] = [
    { what: 'the first page', figure: `${first.toFixed(0)} ms`, target: '≤ 1 s', met: first <= 1000 },
    { what: 'until it has counted all', figure: `${(whole / 1000).toFixed(1)} s` },
  ]
  for (const [what, path] of paths) {
    const times: number[] = []
    for (let n = 0; n < LOADS; n++) times.push(await load(path))
    const median = quantile(times, 0.5)
    lines.push({ what: `${what}, loaded`, figure: delaysFigure(times), target: 'median ≤ 1 s', met: median <= 1000 })
  }
  return lines
}

/** Polls as open pages do. */
async function measureOpenPages(couch: Couch, address: string, serverPid: number | undefined): Promise<Line[]> {
  const { origin, username, password } = new URL(address)
  const signedIn = await fetch(`${origin}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin },
    body: new URLSearchParams({ name: decodeURIComponent(username), password: decodeURIComponent(password) }),
  })
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';')
  const headers = { cookie, accept: 'text/html', 'sidecar-refresh': '1' }
  const open = async (pages: number) => {
    const before = [await statsOf(couch), await usageIfOurs(serverPid)] as const
    const until = performance.now() + OPEN_SECONDS * 1000
    await Promise.all([
      sleep(OPEN_SECONDS * 1000),
      ...Array.from({ length: pages }, async (_, n) => {
        await sleep((n / pages) * REFRESH_MS)
        while (performance.now() < until) {
          const answer = await fetch(`${origin}/`, { headers })
          if (!answer.ok) throw new Error(`expected the page, got ${answer.status}`)
          await answer.text()
          await sleep(REFRESH_MS)
        }
      }),
    ])
    const { requests } = difference(await statsOf(couch), before[0])
    const cpu = (await usageIfOurs(serverPid)).cpuSeconds - before[1].cpuSeconds
    return { requests, cpu }
  }
  const figures = new Map<number, Awaited<ReturnType<typeof open>>>()
  for (const pages of [0, 1, 20]) figures.set(pages, await open(pages))
  const [none, one, twenty] = [figures.get(0)!, figures.get(1)!, figures.get(20)!]
  const more = (than: typeof none, now: typeof none) => now.requests - than.requests
  return [
    ...[...figures].map(([pages, { requests, cpu }]) => ({
      what: `requests to CouchDB in ${OPEN_SECONDS} s, ${pages} pages open`,
      figure: `${requests}; ${cpu.toFixed(1)} s of its processor`,
    })),
    {
      what: 'what twenty pages ask beside none / what one asks',
      figure: (more(none, twenty) / more(none, one)).toFixed(2),
      target: '≤ 1.5',
      met: more(none, twenty) <= 1.5 * more(none, one),
    },
  ]
}
