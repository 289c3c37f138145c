/**
 * Screenshots of the operator page in both colour schemes, on a phone and on a desktop. All go into one new folder,
 * which the test prints at its end. `npm run docs:screenshots` copies the best ones into docs/images.
 */
import { copyFile, mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordDoc } from '../../sidecar/deploy/staging/record.ts'
import { startWith, writeModule } from '../acceptance/own-handlers.ts'
import { findChromium, openBrowser, sharedBrowser, stopSharedBrowser } from '../support/browser.ts'
import { couchUrl, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { silence, startFaultyProxy } from '../support/faulty-proxy.ts'

const BEST = ['on-fire-desktop-light', 'machines-desktop-light']
const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const

const MODULE = `
  import { defineHandlers, defineMachines, Reject } from 'couchdb-sidecar'
  const machines = defineMachines({
    order: {
      paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar' } },
      invoiced: { mode: 'safe', next: { shipped: 'sidecar' } },
      shipped: { next: { archived: 'sidecar' }, timeout: { afterMs: 2592000000, next: 'archived' } },
      archived: {},
      error: { next: { paid: 'client' } },
    },
  })
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  export default defineHandlers(machines, (control) => {
    control.unsafe('order', 'paid', async (order) => {
      await wait(5 + Math.random() * 20)
      if (order.mail === 'down') throw new Error('the mail server refuses the user or the password')
      if (order.stock === 0) throw new Reject('no_stock', 'nothing is left of it')
      return { ...order, state: 'invoiced' }
    }, { version: '2026-11-27' })
    control.safe('order', 'invoiced', (order) => Promise.resolve({ ...order, state: order.slow ? 'invoiced' : 'shipped' }))
  })`

const AT = '2026-11-27T08:00:00.000Z'
const FAILED = {
  ...{ state: 'error', error: { code: 'no_stock', reason: 'nothing is left of it', at: AT } },
  docstate: { state: 'error', failed_in: 'paid' },
}
const DEPLOY = {
  ...{ ddocs: ['_design/docstate', '_design/shop'], previous: {}, known: {} },
  holder: { run: 'r', name: 'ann@laptop', since: AT },
  log: [{ step: 'staging', ddoc: '_design/shop', at: AT }],
} as const

if (findChromium() !== undefined) {
  beforeAll(sharedBrowser)
  afterAll(stopSharedBrowser)
}

test('screenshots show the page empty, healthy, with many failures, and while CouchDB is down', async () => {
  needs('browser')
  const folder = await mkdtemp(join(tmpdir(), 'screenshots-'))
  const proxy = await startFaultyProxy()
  const { orders, sidecar } = await startWith(await writeModule(MODULE), {
    COUCHDB_URL: proxy.url,
    SIDECAR_NAME: 'sidecar-1',
  })
  const browser = await openBrowser()
  const page = await (await browser.newContext({ viewport: SIZES.desktop })).newPage()
  const { username, password } = new URL(couchUrl())
  await page.goto(sidecar.url)
  await page.getByLabel('Name').fill(decodeURIComponent(username))
  await page.getByLabel('Password').fill(decodeURIComponent(password))
  await page.getByRole('button', { name: 'Sign in' }).click()
  const take = (name: string, path: string, sees: string) =>
    takeAll(page, { file: join(folder, name), url: sidecar.url + path, sees })

  await take('empty', '/', 'All is well.')
  const order = (n: number, more: object = {}) => ({
    _id: `order-${String(n).padStart(4, '0')}`,
    type: 'order',
    state: 'paid',
    customer: `c${n}`,
    ...more,
  })
  const write = (docs: readonly object[]) => orders.bulk(docs.map((doc) => JSON.stringify(doc)))
  await write(Array.from({ length: 400 }, (_, n) => order(n)))
  await eventually(async () => expect((await orders.get('order-0399')).state).toBe('shipped'))
  await new Promise((resolve) => setTimeout(resolve, 61_000)) // one point of the series
  await take('well', '/', 'All is well.')
  await write(Array.from({ length: 12 }, (_, n) => order(1000 + n, { stock: 0 })))
  await write(Array.from({ length: 25 }, (_, n) => order(2000 + n, { mail: 'down' })))
  await write([
    order(3000, {
      state: 'paid',
      docstate: { state: 'paid', parked: { at: new Date().toISOString(), reason: 'its worker was lost' } },
    }),
  ])
  await eventually(async () => expect((await orders.get('order-1011')).state).toBe('error'))
  await take('on-fire', '/', 'are stuck')
  await take('machines', '/machines', 'Machines')
  await take('documents', '/documents?type=order', 'order-1000')
  await take('document', `/document?db=${orders.name}&id=order-1000`, 'no_stock')
  await take('handlers', '/handlers', 'order/paid')
  await take('indexes', '/indexes', 'indexes')
  await take('mails', '/mails', 'Recent attempts')
  await take('ask', `/act?verb=retry&db=${orders.name}&status=failed`, 'Yes, retry')
  await write(Array.from({ length: 1500 }, (_, n) => order(4000 + n, FAILED)))
  let writes = 0
  proxy.plan(({ path }) => (path.startsWith(`/${orders.name}/_bulk_docs`) && ++writes > 1 ? silence : undefined))
  await eventually(async () => {
    await page.goto(`${sidecar.url}/act?verb=discard&db=${orders.name}&code=no_stock`)
    expect(await page.locator('main').innerText()).toContain('1,512 documents')
  })
  await page.getByRole('button', { name: 'Yes, discard' }).click()
  await take('batch', new URL(page.url()).pathname + new URL(page.url()).search, 'In progress')
  await orders.put(recordDoc(DEPLOY, undefined))
  await take('deploys', '/deploys', 'A deploy is not complete')
  await proxy.down()
  await take('couchdb-away', '/', 'CouchDB does not answer')
  console.log(`The pictures are in ${folder}.`)
  const { SCREENSHOTS: chosen } = process.env
  if (chosen === undefined) return
  await mkdir(chosen, { recursive: true })
  for (const name of BEST) await copyFile(join(folder, `${name}.png`), join(chosen, `operator-page-${name}.png`))
})

async function takeAll(page: Page, { file, url, sees }: { file: string; url: string; sees: string }): Promise<void> {
  for (const [size, viewport] of Object.entries(SIZES))
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize(viewport)
      await page.emulateMedia({ colorScheme })
      await eventually(async () => {
        await page.goto(url)
        expect(await page.locator('body').innerText()).toContain(sees)
      })
      await page.waitForTimeout(600) // load time of the graphs
      await page.screenshot({ path: `${file}-${size}-${colorScheme}.png` })
    }
}
