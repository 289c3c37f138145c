/** A shop with stuck orders, and a browser with its operator page. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { startWith, writeModule } from '../acceptance/own-handlers.ts'
import type { Settings, Sidecar } from '../acceptance/sidecar.ts'
import { startSidecar } from '../acceptance/start.ts'
import { openBrowser } from '../support/browser.ts'
import { createTestCouch, couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'

/**
 * Number of workers that share the shop. With several, each browser request goes to the next one, as behind a load
 * balancer.
 */
export const shop = { workers: 1 }

/** Three orders that end in error, and one shipped order. */
export async function startShop(settings: Settings = {}) {
  const module = await writeModule(`
    import { defineHandlers, Reject } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.unsafe('order', 'paid', async (order, ctx) => {
        if (order.mail) await ctx.mail.send({ to: order.mail, subject: 'Your order', text: 'It is on its way.' })
        if (order.hurt) throw new TypeError('no such pen')
        if (order.broken) throw new Reject('no_stock', 'nothing is left of <b>pens</b>')
        return { ...order, state: 'shipped' }
      })
    })`)
  const stage = await startWith(module, { SIDECAR_NAME: 'a', ...settings })
  const others = await Promise.all(
    ['b', 'c', 'd'].slice(0, shop.workers - 1).map((name) => startSidecar({ ...stage.settings, SIDECAR_NAME: name })),
  )
  const broken = Array.from({ length: 3 }, (_, n) => ({ _id: `o${n}`, type: 'order', state: 'paid', broken: true }))
  for (const order of [...broken, { _id: 'fine', type: 'order', state: 'paid', email: 'ann@example.com' }])
    await stage.orders.put(order)
  await eventually(async () => {
    const docs = await stage.orders.getMany(['o0', 'o1', 'o2', 'fine'])
    expect(docs.map(({ state }) => state)).toEqual(['error', 'error', 'error', 'shipped'])
  })
  return others.length === 0 ? stage : { ...stage, sidecar: await balance([stage.sidecar, ...others]) }
}

/** Several sidecars behind one address: requests go to each in turn. */
async function balance(sidecars: readonly Sidecar[]): Promise<Pick<Sidecar, 'url' | 'log'>> {
  let next = 0
  const server = createServer((requested, answer) => {
    const { hostname, port } = new URL(sidecars[next++ % sidecars.length]!.url)
    const { method, url: path, headers } = requested
    const passed = request({ hostname, port, method, path, headers, agent: false }, (given) => {
      answer.writeHead(given.statusCode!, given.headers)
      given.pipe(answer)
    })
    passed.on('error', () => answer.destroy())
    requested.pipe(passed)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get log() {
      return sidecars.flatMap(({ log }) => log)
    },
  }
}

export async function makeUser(roles: readonly string[]) {
  const name = `user-${randomBytes(6).toString('hex')}`
  const users = createTestCouch().db('_users')
  const _id = `org.couchdb.user:${name}`
  const _rev = await users.put({ _id, type: 'user', name, roles, password: 'secret' })
  onTestFinished(() => users.remove(_id, _rev))
  return { name, password: 'secret' }
}

export const admin = () => {
  const { username, password } = new URL(couchUrl())
  return { name: decodeURIComponent(username), password: decodeURIComponent(password) }
}

export async function signIn(
  { url }: Pick<Sidecar, 'url'>,
  { name, password }: { name: string; password: string },
  path = '/',
) {
  const browser = await openBrowser()
  const page = await (await browser.newContext()).newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
  await page.goto(url + path)
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  return { page, faults }
}

export const textOf = (page: Page) => page.locator('main').innerText()

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The findings of axe. It runs outside the policy of the page, which blocks its script. */
export async function accessibilityOf(page: Page): Promise<string[]> {
  const results = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    `(() => { const module = undefined; ${AXE}; return axe.run(document) })()`,
  )
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
