/** A shop with orders that are stuck, and a browser in which its operator's page is open. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { startWith, writeModule } from '../acceptance/own-handlers.ts'
import type { Settings, Sidecar } from '../acceptance/sidecar.ts'
import { openBrowser } from '../support/browser.ts'
import { createTestCouch, couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'

/** Orders that end in error, or are parked by hand, and one that is well. */
export async function startShop(settings: Settings = {}) {
  const module = await writeModule(`
    import { defineHandlers, Reject } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.unsafe('order', 'paid', async (order) => {
        if (order.broken) throw new Reject('no_stock', 'nothing is left of <b>pens</b>')
        return { ...order, state: 'shipped' }
      })
    })`)
  const stage = await startWith(module, settings)
  const broken = Array.from({ length: 3 }, (_, n) => ({ _id: `o${n}`, type: 'order', state: 'paid', broken: true }))
  for (const order of [...broken, { _id: 'fine', type: 'order', state: 'paid', email: 'ann@example.com' }])
    await stage.orders.put(order)
  await eventually(async () => {
    const docs = await stage.orders.getMany(['o0', 'o1', 'o2', 'fine'])
    expect(docs.map(({ state }) => state)).toEqual(['error', 'error', 'error', 'shipped'])
  })
  return stage
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

export async function signIn({ url }: Sidecar, { name, password }: { name: string; password: string }, path = '/') {
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

/** What axe finds; it is run beside the page's own policy, which lets no such script in. */
export async function accessibilityOf(page: Page): Promise<string[]> {
  const results = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    `(() => { const module = undefined; ${AXE}; return axe.run(document) })()`,
  )
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
